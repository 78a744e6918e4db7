/* core_save.c - what a core leaves to the one that goes on after a restart. */
#include "core_internal.h"

#include <string.h>

#define SAVE_MAGIC UINT32_C(0x32434c53) /* "SLC2" */

uint64_t core_low_water(const struct core *c)
{
	uint64_t a = steps_low_water(&c->steps), b = match_low_water(&c->match);

	if (b < a)
		a = b;
	for (uint32_t i = 0; i < c->roster.n_procs; i++) {
		const struct proc *p = &c->roster.procs[i];

		for (size_t k = 0; k < p->n_early; k++)
			if (p->early[k].chunk < a)
				a = p->early[k].chunk;
	}
	return a;
}

/* A cursor over bytes that are written, counted or read. */
struct bytes {
	unsigned char *out;
	const unsigned char *in;
	size_t n, at;
	bool bad;
};

static void put(struct bytes *b, const void *v, size_t n)
{
	if (n > 0 && b->at + n <= b->n)
		memcpy(b->out + b->at, v, n);
	b->at += n;
}

static void put_u32(struct bytes *b, uint32_t v)
{
	put(b, &v, sizeof v);
}

static void put_u64(struct bytes *b, uint64_t v)
{
	put(b, &v, sizeof v);
}

static const unsigned char *get(struct bytes *b, size_t n)
{
	if (b->bad || n > b->n - b->at) {
		b->bad = true;
		return NULL;
	}
	b->at += n;
	return b->in + b->at - n;
}

static uint32_t get_u32(struct bytes *b)
{
	const unsigned char *p = get(b, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

static uint64_t get_u64(struct bytes *b)
{
	const unsigned char *p = get(b, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

size_t core_save(const struct core *c, unsigned char *out, size_t n_out)
{
	struct bytes b = { .out = out, .n = 0 };

	/* Once to count, once to write. */
	for (int pass = 0; pass < 2; pass++) {
		b.at = 0;
		put_u32(&b, SAVE_MAGIC);
		put_u32(&b, c->steps.base);
		put_u32(&b, c->steps.n_seen);
		put_u64(&b, c->last_chunk);
		put_u64(&b, c->n_late + c->steps.n_cut);
		put_u32(&b, c->steps.n_spans);
		for (uint32_t i = 0; i < c->steps.n_spans; i++) {
			put_u32(&b, (uint32_t)c->steps.spans[i].restart_count);
			put_u32(&b, c->steps.spans[i].own_first);
			put_u32(&b, c->steps.spans[i].first_step);
			put_u64(&b, c->steps.spans[i].begun_chunk);
			put_u32(&b, c->steps.spans[i].n_cut);
		}
		put_u32(&b, c->match.n_groups);
		for (uint32_t i = 0; i < c->match.n_groups; i++) {
			const struct group *g = &c->match.groups[i];
			uint32_t n_name = (uint32_t)strlen(g->name);

			put_u32(&b, g->life);
			put_u32(&b, g->known ? g->n_expected : 0);
			put_u64(&b, g->told_below);
			put_u32(&b, n_name);
			put(&b, g->name, n_name);
			put_u32(&b, g->n_members);
			put(&b, g->ranks, g->n_members * sizeof *g->ranks);
		}
		if (b.at > n_out)
			break;
		b.n = n_out;
	}
	return b.at;
}

int core_load(struct core *c, const unsigned char *in, size_t n)
{
	struct bytes b = { .in = in, .n = n };
	uint32_t n_spans, n_groups;

	if (get_u32(&b) != SAVE_MAGIC)
		return -EINVAL;
	c->steps.base = c->steps.told_below = c->steps.next_step = get_u32(&b);
	c->steps.n_seen = get_u32(&b);
	c->last_chunk = get_u64(&b);
	c->replay_below = c->last_chunk + 1;
	c->rules.ledger.replayed = true;
	c->n_late = get_u64(&b);
	n_spans = get_u32(&b);
	if (b.bad || n_spans > n / 8)
		return -EINVAL;
	for (uint32_t i = 0; i < n_spans; i++) {
		struct span v = { .restart_count = (int32_t)get_u32(&b) };
		int64_t life = steps_life(&c->steps, v.restart_count);
		int r;

		if (life < 0)
			return (int)life;
		v.own_first = get_u32(&b);
		v.first_step = get_u32(&b);
		v.begun_chunk = get_u64(&b);
		v.n_cut = get_u32(&b);
		if (b.bad || (i > 0 && v.first_step < c->steps.spans[i - 1].first_step))
			return -EINVAL;
		r = steps_add_span(&c->steps, &v);
		if (r < 0)
			return r;
	}
	n_groups = get_u32(&b);
	for (uint32_t i = 0; i < n_groups && !b.bad; i++) {
		uint32_t life = get_u32(&b), n_known = get_u32(&b), n_name, n_members;
		uint64_t told_below = get_u64(&b);
		const unsigned char *text, *ranks;
		char name[256];
		int r;

		n_name = get_u32(&b);
		text = n_name < sizeof name ? get(&b, n_name) : NULL;
		n_members = get_u32(&b);
		ranks = n_members <= MATCH_MAX_MEMBERS ? get(&b, n_members * sizeof(int32_t))
						       : NULL;
		if (!text || !ranks)
			return -EINVAL;
		memcpy(name, text, n_name);
		name[n_name] = '\0';
		r = match_restore(&c->match, name, life, n_known, told_below, ranks, n_members);
		if (r < 0)
			return r;
	}
	return b.bad || b.at != n ? -EINVAL : 0;
}

/* The rule wants a step as a whole, the store may give a row at a time. */
int core_flush_restored(struct core *c)
{
	uint32_t step, n_ranks = c->steps.world_size;
	size_t n = c->restored.n;

	if (n == 0)
		return 0;
	c->restored.n = 0;
	step = c->restored.v[0].step;
	for (size_t i = 0; i < n; i++)
		if ((uint32_t)c->restored.v[i].rank >= n_ranks)
			n_ranks = (uint32_t)c->restored.v[i].rank + 1;
	core_note_step(c, step, n_ranks);
	return slow_fixed_rank_step(c->slow, step, n_ranks, c->restored.v, n, NULL);
}

int core_restore_rank_steps(struct core *c, const struct fact_rank_step *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r;

		if (v[i].rank < 0 || v[i].rank >= FACT_MAX_RANKS)
			continue;
		r = heat_put(c->heat, &v[i]);
		if (r == 0 && c->restored.n > 0 && c->restored.v[0].step != v[i].step)
			r = core_flush_restored(c);
		if (r < 0)
			return r;
		if (!facts_reserve((void **)&c->restored.v, &c->restored.n, &c->restored.n_alloc,
				   sizeof *c->restored.v))
			return -ENOMEM;
		c->restored.v[c->restored.n - 1] = v[i];
	}
	return 0;
}
