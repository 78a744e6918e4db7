#include "placement.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define MAX_PROCS (1u << 17)
#define MAX_COMPARED 64 /* processes, to find who shares a cpu */
#define LEAST_NS INT64_C(200000)

void placement_fini(struct placement *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
}

static struct placed *placed_of(struct placement *s, const struct proc *p)
{
	uint32_t index = (uint32_t)(p - s->roster->procs), n = s->n ? s->n : 16;
	struct placed **grown;

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
	struct placed *q;
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
	const struct placed *q = proc < s->n ? s->v[proc] : NULL;
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
		s->n_late = s->n_others = s->n_others_ill = s->n_well_late = 0;
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
	const struct place *place, *other;
	int64_t well_ns = c->v[c->n_latest - 1].at_ns, cost_ns;
	int ill = is_ill(s, c->v[0].proc, c->v[0].enter_ns, &place);

	for (uint32_t i = c->n; i-- > 1;) {
		bool bad = is_ill(s, c->v[i].proc, c->v[i].enter_ns, &other) == 1;

		s->n_others++;
		s->n_others_ill += bad;
		if (!bad && i < c->n_latest)
			well_ns = c->v[i].at_ns; /* the latest of them in the end */
	}
	cost_ns = c->v[0].at_ns - well_ns;
	if (ill != 1) {
		s->n_well_late++;
		s->well_late_ns += c->gain.ns;
	} else if (cost_ns > c->gain.err_ns && cost_ns >= LEAST_NS) {
		s->late[s->n_late++ % PLACEMENT_KEEP] = (struct placed_late){
			.rank = c->rank, .cpu = place->cpu,
			.other_node = place->node >= 0 && place->device_node >= 0 &&
				      place->node != place->device_node,
			.step = c->step, .at_ns = c->v[0].at_ns, .cost_ns = cost_ns,
			.error_ns = c->gain.err_ns };
	}
}

static void add_latest(struct placed_call *c, const struct placed_member *v)
{
	uint32_t i = c->n_latest;

	if (i == PLACEMENT_SEEN / 2) {
		if (c->v[i - 1].at_ns >= v->at_ns)
			return;
		i--;
	} else {
		c->n_latest++;
	}
	for (; i > 0 && c->v[i - 1].at_ns < v->at_ns; i--)
		c->v[i] = c->v[i - 1];
	c->v[i] = *v;
}

static struct placed_member member_of(const struct match *m, const struct arrival *a)
{
	return (struct placed_member){
		a->proc, a->enter_ns,
		roster_place(m->roster, &m->roster->procs[a->proc], a->enter_ns).at.ns };
}

void placement_call(struct placement *s, const struct match *m, uint32_t group, const struct coll *c,
		    const struct lateness *late)
{
	uint32_t n = m->groups[group].n_members < c->n_alloc ? m->groups[group].n_members : c->n_alloc;
	struct placed_call v = { .step = c->step, .rank = m->roster->procs[late->proc].rank,
				 .gain = late->gain };

	if (!s->any || !late->all_here ||
	    !follow_life(s, m->roster->procs[late->proc].life, late->last_ns) ||
	    late->gain.err_ns == CLOCK_UNBOUNDED)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct placed_member member;

		if (c->arrivals[i].enter_ns == FACT_NONE)
			continue;
		member = member_of(m, &c->arrivals[i]);
		add_latest(&v, &member);
	}
	if (v.n_latest < 2 || v.v[0].at_ns - v.v[v.n_latest - 1].at_ns < LEAST_NS)
		return;
	v.n = v.n_latest;
	for (uint32_t i = 0; n > PLACEMENT_SEEN / 2 && v.n < PLACEMENT_SEEN; i++) {
		const struct arrival *a = &c->arrivals[(c->seq * PLACEMENT_SEEN + i) % n];

		if (i == PLACEMENT_SEEN)
			break;
		if (a->enter_ns != FACT_NONE && a->proc != late->proc)
			v.v[v.n++] = member_of(m, a);
	}
	if (s->n_pending - s->n_settled == PLACEMENT_PENDING)
		settle(s, &s->pending[s->n_settled++ % PLACEMENT_PENDING]);
	s->pending[s->n_pending++ % PLACEMENT_PENDING] = v;
}

void placement_settle(struct placement *s, bool finishing)
{
	while (s->n_settled < s->n_pending &&
	       (finishing || s->pending[s->n_settled % PLACEMENT_PENDING].seen))
		settle(s, &s->pending[s->n_settled++ % PLACEMENT_PENDING]);
	for (uint64_t i = s->n_settled; i < s->n_pending; i++)
		s->pending[i % PLACEMENT_PENDING].seen = true;
}
