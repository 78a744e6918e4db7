#include "roster.h"

#include <string.h>

void roster_fini(struct roster *r)
{
	for (uint32_t i = 0; i < r->n_procs; i++) {
		free(r->procs[i].rings);
		free(r->procs[i].names);
		free(r->procs[i].early);
	}
	for (uint32_t i = 0; i < r->n_texts; i++)
		free(r->texts[i]);
	for (uint32_t i = 0; i < r->n_hosts; i++) {
		free(r->hosts[i].name);
		clock_fini(&r->hosts[i].clock);
	}
	free(r->hosts);
	free(r->procs);
	free(r->texts);
	free(r->text_slots);
	idmap_fini(&r->host_of);
	idmap_fini(&r->proc_of);
	memset(r, 0, sizeof *r);
}

static bool room(void **v, uint32_t n, uint32_t *n_alloc, size_t size)
{
	uint32_t want = *n_alloc ? *n_alloc * 2 : 8;
	void *grown;

	if (n < *n_alloc)
		return true;
	if (want <= n)
		return false; /* wrapped */
	grown = realloc(*v, want * size);
	if (!grown)
		return false;
	*v = grown;
	*n_alloc = want;
	return true;
}

struct host *roster_find_host(const struct roster *r, uint32_t id)
{
	uint32_t i = idmap_get(&r->host_of, id);

	return i == IDMAP_NONE ? NULL : &r->hosts[i];
}

struct proc *roster_find_proc(const struct roster *r, uint32_t id)
{
	uint32_t i = idmap_get(&r->proc_of, id);

	return i == IDMAP_NONE ? NULL : &r->procs[i];
}

struct host *roster_host(struct roster *r, uint32_t id)
{
	struct host *h = roster_find_host(r, id);

	if (h)
		return h;
	if (!room((void **)&r->hosts, r->n_hosts, &r->n_hosts_alloc, sizeof *r->hosts) ||
	    idmap_put(&r->host_of, id, r->n_hosts) != 0)
		return NULL;
	h = &r->hosts[r->n_hosts++];
	memset(h, 0, sizeof *h);
	h->id = id;
	clock_init(&h->clock, false, 0);
	return h;
}

struct proc *roster_proc(struct roster *r, uint32_t id)
{
	struct proc *p = roster_find_proc(r, id);

	if (p)
		return p;
	if (!room((void **)&r->procs, r->n_procs, &r->n_procs_alloc, sizeof *r->procs) ||
	    idmap_put(&r->proc_of, id, r->n_procs) != 0)
		return NULL;
	p = &r->procs[r->n_procs++];
	memset(p, 0, sizeof *p);
	p->id = id;
	p->rank = -1;
	p->cur_step = EVENT_STEP_UNKNOWN;
	return p;
}

struct ring *roster_ring(struct proc *p, uint32_t ring)
{
	if (ring >= ROSTER_MAX_RINGS)
		return NULL;
	if (ring >= p->n_rings) {
		uint32_t want = ring < 4 ? 4 : ring + 4;
		struct ring *grown = realloc(p->rings, want * sizeof *grown);

		if (!grown)
			return NULL;
		memset(grown + p->n_rings, 0, (want - p->n_rings) * sizeof *grown);
		p->rings = grown;
		p->n_rings = want;
	}
	p->rings[ring].used = true;
	return &p->rings[ring];
}

static uint64_t hash_text(const char *text, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return h;
}

static uint32_t *text_slot(const struct roster *r, const char *text, size_t n)
{
	for (uint64_t i = hash_text(text, n);; i++) {
		uint32_t *s = &r->text_slots[i & (r->n_text_slots - 1)];

		if (*s == 0 || (strncmp(r->texts[*s - 1], text, n) == 0 &&
				r->texts[*s - 1][n] == '\0'))
			return s;
	}
}

/* Processes of one job say the same names: each text is held once. */
static int intern(struct roster *r, const char *text, size_t n, uint32_t *ret)
{
	uint32_t *s;

	if (2 * (r->n_texts + 1) > r->n_text_slots) {
		uint32_t n_slots = r->n_text_slots ? 2 * r->n_text_slots : 64;
		uint32_t *slots = calloc(n_slots, sizeof *slots);

		if (!slots)
			return -ENOMEM;
		free(r->text_slots);
		r->text_slots = slots;
		r->n_text_slots = n_slots;
		for (uint32_t i = 0; i < r->n_texts; i++)
			*text_slot(r, r->texts[i], strlen(r->texts[i])) = i + 1;
	}
	s = text_slot(r, text, n);
	if (*s == 0) {
		char *copy;

		if (!room((void **)&r->texts, r->n_texts, &r->n_texts_alloc, sizeof *r->texts))
			return -ENOMEM;
		copy = strndup(text, n);
		if (!copy)
			return -ENOMEM;
		r->texts[r->n_texts++] = copy;
		*s = r->n_texts;
	}
	*ret = *s;
	return 0;
}

int roster_name(struct roster *r, struct proc *p, uint32_t id, const char *text, size_t n_text)
{
	uint32_t index;
	int e;

	if (id == 0 || id > ROSTER_MAX_NAMES)
		return 0;
	n_text = strnlen(text, n_text); /* an embedded zero ends it */
	if (id >= p->n_names) {
		uint32_t want = id < 16 ? 16 : id + id / 2;
		struct name_use *grown = realloc(p->names, want * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		memset(grown + p->n_names, 0, (want - p->n_names) * sizeof *grown);
		p->names = grown;
		p->n_names = want;
	}
	e = intern(r, text, n_text, &index);
	if (e < 0)
		return e;
	if (p->names[id].text != index)
		p->names[id] = (struct name_use){ .text = index };
	return 0;
}

struct fleet_point roster_place(struct roster *r, const struct proc *p, int64_t host_ns)
{
	struct host *h = &r->hosts[p->host];
	host_time t = { host_ns };
	struct fleet_point ret;

	if (h->clock.exact)
		return (struct fleet_point){ { host_ns + h->clock.offset_ns }, p->tick_error_ns,
					     p->tick_error_ns, FLEET_ANCHORED };
	if (h->placed_epoch != r->epoch) {
		h->placed = clock_choose(&h->clock, t);
		h->placed_epoch = r->epoch;
		if (r->shift)
			h->placed.offset_ns +=
				r->shift(r->shift_arg, p->host, t, h->placed.offset_ns);
	}
	clock_place(&h->clock, &h->placed, t, &ret);
	if (!clock_decides(ret.status))
		ret.err_ns = CLOCK_UNBOUNDED;
	if (ret.err_ns != CLOCK_UNBOUNDED)
		ret.err_ns += p->tick_error_ns;
	if (ret.soft_ns != CLOCK_UNBOUNDED)
		ret.soft_ns += p->tick_error_ns;
	return ret;
}
