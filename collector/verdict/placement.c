#include "placement.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define MAX_PROCS (1u << 17)
#define MAX_COMPARED 64 /* processes, to find who shares a cpu */
#define LEAST_NS LATENESS_LEAST_NS

void placement_fini(struct placement *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
}

static struct placed_proc *placed_of(struct placement *s, const struct proc *p)
{
	uint32_t index = (uint32_t)(p - s->roster->procs), n = s->n ? s->n : 16;
	struct placed_proc **grown;

	while (n <= index)
		n *= 2;
	if (index >= s->n) {
		grown = n <= MAX_PROCS ? realloc(s->v, n * sizeof *grown) : NULL;
		if (!grown)
			return NULL;
		memset(grown + s->n, 0, (n - s->n) * sizeof *grown);
		s->v = grown;
		s->n = n;
	}
	if (!s->v[index])
		s->v[index] = calloc(1, sizeof **s->v);
	return s->v[index];
}

static int32_t number(const json_t *fields, const char *name)
{
	const json_t *v = json_object_get(fields, name);

	return json_is_integer(v) && json_integer_value(v) >= 0 &&
			       json_integer_value(v) < INT32_MAX ?
		       (int32_t)json_integer_value(v) : -1;
}

/* One cpu only: "3", "0x8", "00000008". A mask that cannot be read is none. */
static bool is_one_cpu(const json_t *mask)
{
	const char *text = json_string_value(mask);
	unsigned bits = 0;

	if (!text)
		return false;
	if (strspn(text, "0123456789") == strlen(text) && strlen(text) < 4)
		return true;
	if (strncmp(text, "0x", 2) == 0)
		text += 2;
	for (; *text; text++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, *text | 0x20);

		if (*text == ',')
			continue;
		if (!at)
			return false;
		bits += (unsigned)__builtin_popcount((unsigned)(at - digits));
	}
	return bits == 1;
}

int placement_record(struct placement *s, const struct proc *p, int64_t at_ns, const char *category,
		     const char *fields_json, size_t n_fields)
{
	bool cpu = strcmp(category, "sched.cpu") == 0;
	struct placed_proc *q;
	json_t *fields;

	if (!cpu && strcmp(category, "sched.affinity") != 0)
		return 0;
	q = placed_of(s, p);
	if (!q)
		return p - s->roster->procs < MAX_PROCS ? -ENOMEM : 0;
	fields = json_loadb(fields_json, n_fields, 0, NULL);
	if (cpu && fields)
		q->v[q->n++ % PLACEMENT_OF_PROC] = (struct place){
			.at_ns = at_ns, .cpu = number(fields, "cpu"), .node = number(fields, "numa"),
			.device_node = number(fields, "gpu_numa") };
	else if (fields)
		q->bound = is_one_cpu(json_object_get(fields, "mask"));
	json_decref(fields);
	s->any |= cpu;
	return 0;
}

/* Where it was then; NULL when that is not known. */
static const struct place *place_at(const struct placement *s, uint32_t proc, int64_t at_ns)
{
	const struct placed_proc *q = proc < s->n ? s->v[proc] : NULL;
	const struct place *found = NULL;

	for (uint64_t i = 0; q && i < q->n && i < PLACEMENT_OF_PROC; i++)
		if (q->v[i].at_ns <= at_ns && (!found || q->v[i].at_ns >= found->at_ns))
			found = &q->v[i];
	return found;
}

/* Another rank of its host was on its cpu. */
static bool shares_cpu(const struct placement *s, uint32_t proc, const struct place *here, int64_t at_ns)
{
	const struct roster *r = s->roster;

	if (here->cpu < 0 || r->n_procs > MAX_COMPARED)
		return false;
	for (uint32_t i = 0; i < r->n_procs; i++) {
		const struct place *there;

		if (i == proc || r->procs[i].host != r->procs[proc].host ||
		    r->procs[i].life != r->procs[proc].life ||
		    (r->procs[i].gone && r->procs[i].gone_at.ns < at_ns))
			continue;
		there = place_at(s, i, at_ns);
		if (there && there->cpu == here->cpu)
			return true;
	}
	return false;
}

/* 1 = ill, 0 = well, -1 = not known. */
static int is_ill(const struct placement *s, uint32_t proc, int64_t at_ns, const struct place **ret)
{
	*ret = place_at(s, proc, at_ns);
	if (!*ret)
		return -1;
	if ((*ret)->node >= 0 && (*ret)->device_node >= 0 && (*ret)->node != (*ret)->device_node)
		return 1;
	return shares_cpu(s, proc, *ret, at_ns);
}

static bool follow_life(struct placement *s, uint32_t life, int64_t at_ns)
{
	if (life > s->life) {
		s->life = life;
		s->n_late = s->n_others = s->n_others_ill = 0;
		s->n_settled = s->n_pending;
		s->well_late_ns = 0;
		s->first_ns = at_ns;
	}
	if (life == s->life)
		s->last_ns = at_ns;
	return life == s->life;
}

static void settle(struct placement *s, const struct placed_call *c)
{
	const struct late_member *last = &c->late.v[0], *base;
	const struct place *place, *other;
	int ill = is_ill(s, last->proc, last->enter_ns, &place);
	uint32_t i = 1;

	for (uint32_t k = 0; k < c->n_others; k++) {
		s->n_others++;
		s->n_others_ill += is_ill(s, c->others[k].proc, c->others[k].enter_ns, &other) == 1;
	}
	while (ill == 1 && i + 1 < c->late.n &&
	       is_ill(s, c->late.v[i].proc, c->late.v[i].enter_ns, &other) == 1)
		i++;
	base = &c->late.v[i];
	if (base->behind.err_ns == CLOCK_UNBOUNDED || base->behind.ns <= base->behind.err_ns ||
	    base->behind.ns < LEAST_NS)
		return;
	if (ill != 1) {
		s->well_late_ns += base->behind.ns;
		return;
	}
	s->late[s->n_late++ % PLACEMENT_KEEP] = (struct placed_late){
		.rank = last->rank, .step = c->step, .at_ns = last->at_ns,
		.other_node = place->node >= 0 && place->device_node >= 0 &&
			      place->node != place->device_node,
		.cost_ns = base->behind.ns, .error_ns = base->behind.err_ns };
}

void placement_call(struct placement *s, const struct match *m, const struct coll *c,
		    const struct lateness *late)
{
	const struct late_member *last = &late->v[0];
	uint32_t first = (uint32_t)(c->seq * PLACEMENT_OTHERS % (c->n_alloc ? c->n_alloc : 1));
	struct placed_call *v;

	if (!s->any || !late->all_here ||
	    !follow_life(s, m->roster->procs[last->proc].life, last->at_ns) ||
	    late->v[late->n - 1].behind.ns < LEAST_NS)
		return;
	if (s->n_pending - s->n_settled == PLACEMENT_PENDING)
		settle(s, &s->pending[s->n_settled++ % PLACEMENT_PENDING]);
	v = &s->pending[s->n_pending++ % PLACEMENT_PENDING];
	*v = (struct placed_call){ .late = *late, .step = c->step };
	for (uint32_t i = 0; i < c->n_alloc && i < 2 * PLACEMENT_OTHERS &&
			     v->n_others < PLACEMENT_OTHERS; i++) {
		const struct arrival *a = &c->arrivals[(first + i) % c->n_alloc];

		if (a->enter_ns == FACT_NONE || a->proc == last->proc)
			continue;
		v->others[v->n_others].proc = a->proc;
		v->others[v->n_others++].enter_ns = a->enter_ns;
	}
}

void placement_settle(struct placement *s, bool finishing)
{
	while (s->n_settled < s->n_pending &&
	       (finishing || s->pending[s->n_settled % PLACEMENT_PENDING].seen))
		settle(s, &s->pending[s->n_settled++ % PLACEMENT_PENDING]);
	for (uint64_t i = s->n_settled; i < s->n_pending; i++)
		s->pending[i % PLACEMENT_PENDING].seen = true;
}
