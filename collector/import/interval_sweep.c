#include "interval_sweep.h"

#include <string.h>

static unsigned set_at(const struct sweep *s)
{
	unsigned set = 0;

	for (unsigned i = 0; i < SWEEP_CLASSES; i++)
		set |= s->end_ns[i] > s->at_ns ? 1u << i : 0;
	return set;
}

static int64_t next_end(const struct sweep *s, int64_t to_ns)
{
	for (unsigned i = 0; i < SWEEP_CLASSES; i++)
		if (s->end_ns[i] > s->at_ns && s->end_ns[i] < to_ns)
			to_ns = s->end_ns[i];
	return to_ns;
}

void sweep_until(struct sweep *s, int64_t to_ns)
{
	while (s->begun && s->at_ns < to_ns) {
		int64_t next_ns = next_end(s, to_ns);

		s->sum_ns[set_at(s)] += next_ns - s->at_ns;
		s->at_ns = next_ns;
	}
}

void sweep_begin(struct sweep *s, int64_t at_ns)
{
	if (!s->begun)
		for (unsigned i = 0; i < SWEEP_CLASSES; i++)
			s->end_ns[i] = INT64_MIN;
	memset(s->sum_ns, 0, sizeof s->sum_ns);
	s->at_ns = at_ns;
	s->begun = true;
}

void sweep_add(struct sweep *s, unsigned set, int64_t begin_ns, int64_t end_ns)
{
	if (!s->begun)
		sweep_begin(s, begin_ns);
	sweep_until(s, begin_ns);
	for (unsigned i = 0; i < SWEEP_CLASSES; i++)
		if (set >> i & 1 && end_ns > s->end_ns[i])
			s->end_ns[i] = end_ns;
}

void sweep_finish(struct sweep *s)
{
	for (unsigned i = 0; i < SWEEP_CLASSES && s->begun; i++)
		sweep_until(s, s->end_ns[i]);
}

int64_t sweep_sum(const struct sweep *s, unsigned mask, unsigned want)
{
	int64_t sum = 0;

	for (unsigned set = 0; set < SWEEP_SETS; set++)
		if ((set & mask) == want)
			sum += s->sum_ns[set];
	return sum;
}
