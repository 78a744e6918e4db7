/* pairs_bias.c - some ranks always leave a little later than others.
 *
 * The exits alone cannot tell such a habit from a clock that is off. But a rank
 * that enters last waits for nobody: how long it then stays is the collective's
 * own duration plus its habit, on one clock. The low end of that (congestion
 * only adds) is compared between members, each time against the level of the
 * moment, and believed as far as its noise is smaller than the spread of the
 * habits that are seen.
 */
#include "pairs_internal.h"

#include <math.h>
#include <stdlib.h>

#define LOW 0.16  /* of the durations: congestion only adds */
#define N_LEAST 3 /* durations of a member before they say anything */
#define N_LEVEL 8
#define MAX_BLOCKS 16 /* remembered, as weight */
#define MAX_OWN_NS 1000000000
#define LONGEST 2   /* habits, in durations */
#define N_POOL 8.0F /* durations that the spread of all is worth for one member's */
#define N_PRIOR 4   /* members that the spread of habits is worth before any is known */
#define N_NOISE 20 /* words on the noise before it is known */
#define LEAST_SD 20.0F

static int by_value(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

/* The q-th part of sorted values, between two of them. */
static float part_of(const int32_t *s, uint32_t n, double q)
{
	double at = q * (n + 1) - 1;
	uint32_t k;

	if (at <= 0)
		return (float)s[0];
	k = (uint32_t)at;
	return k + 1 < n ? (float)(s[k] + (at - k) * (s[k + 1] - s[k])) : (float)s[n - 1];
}

/* The low end of v[i * stride], and the deviation of that estimate. */
static float low_end(const int32_t *v, uint32_t n, size_t stride, float *ret_sd)
{
	int32_t s[N_OWN] = { 0 };

	*ret_sd = LEAST_SD;
	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		s[i] = v[i * stride];
	qsort(s, n, sizeof *s, by_value);
	/* As if the values lay evenly below twice that part. */
	*ret_sd += (float)(sqrt((1 - LOW) / LOW / n) / 2 * (part_of(s, n, 2 * LOW) - (double)s[0]));
	return part_of(s, n, LOW);
}

void bias_note(struct exits *x, uint32_t member, uint32_t n_members, int64_t own_ns)
{
	struct usual *u = &x->usual[member];
	uint32_t n_level = x->n_recent < N_OWN ? x->n_recent : N_OWN;
	float level, sd, early;
	double share;

	if (own_ns <= 0 || own_ns > MAX_OWN_NS)
		return;
	/* Without this one: nobody is measured against himself. */
	level = low_end(x->recent, n_level, 1, &x->level_sd);
	x->recent[x->n_recent++ % N_OWN] = (int32_t)own_ns;
	if (n_level < N_LEVEL)
		return;
	x->own[u->n_own % N_OWN * n_members + member] = (int32_t)own_ns - (int32_t)level;
	if (++u->n_own % N_OWN != 0)
		return;
	early = low_end(&x->own[member], N_OWN, n_members, &sd);
	if (u->n_blocks < MAX_BLOCKS)
		u->n_blocks++;
	share = 1.0 / u->n_blocks;
	u->early += (float)share * (early - u->early);
	u->early_sd = u->n_blocks == 1 ? sd : u->early_sd + (float)share * (sd - u->early_sd);
}

int64_t bias_shortest(const struct exits *x)
{
	uint32_t n = x->n_recent < N_OWN ? x->n_recent : N_OWN;
	int32_t shortest = INT32_MAX;

	for (uint32_t i = 0; i < n; i++)
		shortest = x->recent[i] < shortest ? x->recent[i] : shortest;
	return n < N_LEVEL ? 0 : shortest;
}

/* What is known of one member: false when too little is. */
static bool early_of(const struct exits *x, uint32_t member, uint32_t n_members, float *ret_v,
		     float *ret_sd)
{
	const struct usual *u = &x->usual[member];
	float pooled;

	if (u->n_blocks > 0) {
		*ret_v = u->early;
		*ret_sd = u->early_sd / sqrtf((float)u->n_blocks);
		return true;
	}
	if (u->n_own < N_LEAST)
		return false;
	*ret_v = low_end(&x->own[member], u->n_own, n_members, ret_sd);
	/* The spread of a few is not known from a few. */
	pooled = x->level_sd * sqrtf((float)N_OWN / (float)u->n_own);
	*ret_sd = sqrtf(((float)u->n_own * *ret_sd * *ret_sd + N_POOL * pooled * pooled) /
			((float)u->n_own + N_POOL));
	return true;
}

/* The members' mean, weighted by what is known of each, and the variance of the
 * habits themselves: what noise does not explain, started from the prior. */
static double mean_of(const struct exits *x, uint32_t n_members, double limit, double centre,
		      double prior, double *spread)
{
	double sum = 0, weight = 0, squares = 0, own = 0, excess;
	uint32_t n = 0;
	float v, sd;

	for (uint32_t i = 0; i < n_members; i++) {
		double w;

		if (!early_of(x, i, n_members, &v, &sd) || fabs(v - centre) > limit)
			continue;
		w = 1 / (*spread + (double)sd * sd);
		sum += w * (v - centre);
		weight += w;
		squares += (v - centre) * (v - centre);
		own += (double)sd * sd;
		n++;
	}
	if (n < 2)
		return NAN;
	sum /= weight;
	/* More than noise alone would give: by much where few members do not average its
	 * tails. */
	excess = squares - n * sum * sum - own * (1 + 20.0 / (n - 1));
	*spread = ((excess > 0 ? excess : 0) + N_PRIOR * prior * prior) / (n - 1 + N_PRIOR);
	return centre + sum;
}

void bias_learn(const struct pairs *p, const struct group *g, struct exits *x)
{
	uint32_t n_level = x->n_recent < N_OWN ? x->n_recent : N_OWN;
	double prior = (double)p->cfg.exit_skew_ns, unknown, spread, mean = 0, level;
	float v, sd;

	if (n_level < N_LEVEL && !x->queued)
		return;
	if (n_level < N_LEVEL) {
		/* Who leaves unevenly by chance may do so by habit: as much, as far as is known. */
		unknown = x->n_noise < N_NOISE ? INFINITY : fmax(prior, x->noise);
		for (uint32_t i = 0; i < g->n_members; i++)
			x->usual[i].sd = (float)unknown;
		return;
	}
	/* A habit is a part of the algorithm: it cannot be much longer than all of
	 * it. What is (entries stamped long before the start) says nothing. */
	level = low_end(x->recent, n_level, 1, &sd);
	unknown = prior + p->cfg.exit_skew_share * level;
	spread = prior * prior;
	for (int round = 0; round < 3 && !isnan(mean); round++)
		mean = mean_of(x, g->n_members, LONGEST * level, mean, prior, &spread);
	unknown = fmax(unknown, sqrt(spread));
	for (uint32_t i = 0; i < g->n_members; i++) {
		struct usual *u = &x->usual[i];
		double own, share;

		u->bias = 0;
		u->sd = (float)unknown;
		if (isnan(mean) || !early_of(x, i, g->n_members, &v, &sd) ||
		    fabs(v - mean) > LONGEST * level)
			continue;
		own = (double)sd * sd;
		share = spread / (spread + own);
		u->bias = (float)(share * (v - mean));
		u->sd = (float)sqrt(share * own + (1 - share) * (1 - share) * unknown * unknown);
	}
}

bool pairs_exit_bias(const struct pairs *p, uint32_t group, uint32_t kind, uint64_t bytes,
		     uint32_t member, int64_t *ret_bias_ns, int64_t *ret_sd_ns)
{
	const struct exits *x;
	float v, sd;

	if (group >= p->n_groups || member >= p->groups[group].n_members)
		return false;
	x = exits_find(&p->groups[group], kind, bytes);
	if (!x || !early_of(x, member, p->groups[group].n_members, &v, &sd))
		return false;
	*ret_bias_ns = lroundf(x->usual[member].bias);
	*ret_sd_ns = lroundf(x->usual[member].sd);
	return true;
}
