#include "profile_breakdown.h"

#include "kernel_class.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void breakdown_init(struct breakdown *b, int64_t cut_ns)
{
	*b = (struct breakdown){ .cut_ns = cut_ns, .whole = { .step = TRACE_NULL } };
}

void breakdown_fini(struct breakdown *b)
{
	free(b->steps);
}

static void put_step(struct breakdown *b)
{
	if (b->n_steps == BREAKDOWN_MAX_STEPS)
		return;
	if (b->n_steps == b->n_steps_alloc) {
		uint32_t want = b->n_steps_alloc ? 2 * b->n_steps_alloc : 16;
		struct breakdown_row *grown = realloc(b->steps, want * sizeof *grown);

		if (!grown) {
			b->no_memory = true;
			return;
		}
		b->steps = grown;
		b->n_steps_alloc = want;
	}
	b->steps[b->n_steps++] = b->open;
}

static void close_step(struct breakdown *b)
{
	if (!b->in_step)
		return;
	sweep_until(&b->step, b->open.to_ns);
	memcpy(b->open.sum_ns, b->step.sum_ns, sizeof b->open.sum_ns);
	put_step(b);
	b->in_step = false;
}

static void close_before(struct breakdown *b, int64_t at_ns)
{
	if (b->in_step && b->open.to_ns <= at_ns)
		close_step(b);
}

void breakdown_step(struct breakdown *b, int64_t step, int64_t begin_ns, int64_t end_ns)
{
	if (b->in_step && b->open.to_ns > begin_ns)
		b->open.to_ns = begin_ns;
	close_step(b);
	sweep_until(&b->step, begin_ns);
	sweep_begin(&b->step, begin_ns);
	b->open = (struct breakdown_row){ .step = step, .from_ns = begin_ns, .to_ns = end_ns };
	b->in_step = true;
}

/* In doubles of microseconds, as it is done there: of a stamp since 1970 those know a
 * quarter of one, and whether an end is rounded up to a whole one is that. */
static double us(int64_t ns)
{
	return (double)((long double)ns / 1000);
}

static void add_to_whole(struct breakdown *b, unsigned class, int64_t begin_ns, int64_t end_ns)
{
	double end_us = us(begin_ns) + us(end_ns - begin_ns);

	begin_ns = (int64_t)ceil(us(begin_ns)) * 1000;
	end_ns = (int64_t)floor(end_us) * 1000;
	if (end_ns < begin_ns)
		end_ns = begin_ns;
	if (!b->all.begun)
		b->whole.from_ns = b->whole.to_ns = begin_ns;
	if (end_ns > b->whole.to_ns)
		b->whole.to_ns = end_ns;
	b->whole.n_work++;
	sweep_add(&b->all, class, begin_ns, end_ns);
}

void breakdown_work(struct breakdown *b, unsigned class, int64_t begin_ns, int64_t end_ns, int64_t launched_ns)
{
	close_before(b, begin_ns);
	sweep_add(&b->step, class, begin_ns, end_ns);
	b->open.n_work += b->in_step;
	if (b->cut_ns == INT64_MAX || launched_ns < b->cut_ns)
		add_to_whole(b, class, begin_ns, end_ns);
}

void breakdown_end(struct breakdown *b)
{
	close_step(b);
	sweep_until(&b->all, b->whole.to_ns);
	memcpy(b->whole.sum_ns, b->all.sum_ns, sizeof b->whole.sum_ns);
}

static int64_t sum(const struct breakdown_row *r, unsigned mask, unsigned want)
{
	int64_t ns = 0;

	for (unsigned set = 0; set < SWEEP_SETS; set++)
		ns += (set & mask) == want ? r->sum_ns[set] : 0;
	return ns;
}

static bool put_row(struct trace *t, int32_t rank, int64_t base_ns, const struct breakdown_row *r)
{
	const unsigned compute = CLASS_COMPUTE, comm = CLASS_COMMUNICATION, memory = CLASS_MEMORY;

	return trace_row(t, "profile_breakdown", "iiiiiiiiiiiii", (int64_t)rank, r->step, base_ns + r->from_ns,
			 base_ns + r->to_ns, r->n_work, r->sum_ns[0], sum(r, compute, compute), sum(r, comm, comm),
			 sum(r, memory, memory), sum(r, compute | comm, compute | comm), r->sum_ns[compute],
			 r->sum_ns[comm], r->sum_ns[memory]);
}

bool breakdown_tell(const struct breakdown *b, struct trace *t, int32_t rank, int64_t base_ns, bool with_steps)
{
	bool fine = b->whole.n_work == 0 || put_row(t, rank, base_ns, &b->whole);

	for (uint32_t i = 0; i < b->n_steps && fine && with_steps; i++)
		fine = put_row(t, rank, base_ns, &b->steps[i]);
	return fine;
}
