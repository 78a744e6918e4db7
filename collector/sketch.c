#include "sketch.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FACTOR ((1 + SKETCH_ERROR) / (1 - SKETCH_ERROR))

void sketch_fini(struct sketch *s)
{
	free(s->v);
	*s = (struct sketch){ 0 };
}

/* Bucket i holds what lies above FACTOR^(i - 1), up to FACTOR^i. */
static int32_t bucket_of(int64_t ns)
{
	return (int32_t)ceil(log((double)ns) / log(FACTOR));
}

/* The value from which both ends of the bucket are SKETCH_ERROR away. */
static double value_of(int32_t bucket)
{
	return 2 * pow(FACTOR, bucket) / (1 + FACTOR);
}

static bool make_room(struct sketch *s, int32_t lo, int32_t hi)
{
	uint32_t want;
	uint32_t *v;

	if (s->n_slots && lo >= s->first && hi < s->first + (int32_t)s->n_slots)
		return true;
	if (s->n_slots) {
		lo = lo < s->first ? lo : s->first;
		hi = hi >= s->first + (int32_t)s->n_slots ? hi : s->first + (int32_t)s->n_slots - 1;
	}
	want = (uint32_t)(hi - lo + 1);
	v = calloc(want, sizeof *v);
	if (!v)
		return false;
	if (s->n_slots)
		memcpy(v + (s->first - lo), s->v, s->n_slots * sizeof *v);
	free(s->v);
	s->v = v;
	s->first = lo;
	s->n_slots = want;
	return true;
}

int sketch_add(struct sketch *s, int64_t ns)
{
	int64_t v = ns > 1 ? ns : 1;
	int32_t bucket = bucket_of(v);

	if (!make_room(s, bucket, bucket))
		return -ENOMEM;
	if (s->v[bucket - s->first] < UINT32_MAX)
		s->v[bucket - s->first]++;
	s->min = s->n == 0 || v < s->min ? v : s->min;
	s->max = s->n == 0 || v > s->max ? v : s->max;
	s->sum += (double)v;
	s->n++;
	return 0;
}

int sketch_merge(struct sketch *to, const struct sketch *from)
{
	if (from->n == 0)
		return 0;
	if (!make_room(to, from->first, from->first + (int32_t)from->n_slots - 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_slots; i++)
		to->v[(int32_t)i + from->first - to->first] += from->v[i];
	to->min = to->n == 0 || from->min < to->min ? from->min : to->min;
	to->max = to->n == 0 || from->max > to->max ? from->max : to->max;
	to->sum += from->sum;
	to->n += from->n;
	return 0;
}

int64_t sketch_quantile(const struct sketch *s, double q)
{
	double at = q * (double)s->n, passed = 0;
	double v;

	if (s->n == 0)
		return 0;
	for (uint32_t i = 0; i < s->n_slots; i++) {
		passed += s->v[i];
		if (passed < at || passed < 1)
			continue;
		v = value_of(s->first + (int32_t)i);
		return v >= (double)s->max ? s->max : v <= (double)s->min ? s->min : llround(v);
	}
	return s->max;
}
