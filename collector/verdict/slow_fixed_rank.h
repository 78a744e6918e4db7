/* slow_fixed_rank.h - slow.fixed_rank: one rank computes longer than its peers, from a step on.
 *
 * A pure function over rank-step facts, fed in step order, incremental. Only
 * durations on each rank's own clock are compared, so no clock error enters.
 *
 * The test. In each step rank i has the position r = how many others were
 * faster than it by more than the effect that matters (5 % of the step, or the
 * tick conversion's error if that is more). If i is not slower than its peers
 * by that much, r is at most uniform on 0..n-1, whatever the distribution of
 * the noise is: heavy tails, noise shared by all ranks and pauses of single
 * steps change nothing. So f(r), non-decreasing with mean 1 under the uniform
 * law, is a fair bet or worse, and the product of f over steps is a test
 * supermartingale: the chance that it ever reaches 1/a is at most a (Ville's
 * inequality; J. Ville, "Étude critique de la notion de collectif", 1939).
 * The onset is unknown: one such product starts at each step k with the weight
 * 1 / (k + 1)(k + 2), and there are four shapes of f and n ranks, so a rank is
 * named when its best product since any k exceeds 4 n (k + 1)(k + 2) / a, with
 * a = 1e-6 a run. (That maximum is CUSUM; E. S. Page, "Continuous inspection
 * schemes", Biometrika 1954. Mixed over onsets it is an e-detector: Shin,
 * Ramdas, Rinaldo, "E-detectors", 2022.) There is no number of looks to correct
 * for: the bound holds for all steps of a run together.
 *
 * Steps are not independent where ranks contend for cores: whoever shares one
 * stays slow for a while. The autocorrelation time tau of the positions is
 * measured on the data before and after the onset, and the logarithm of the
 * product must exceed tau times the limit: the product over every tau-th step
 * is a fair test, and the geometric mean of tau such is at most their mean,
 * which is one too. tau is never believed to be below 2. And as a short past tells
 * little about how long such spells last, its logarithm must also exceed four
 * times the highest that anybody reached in this run and fell from: of m + 1
 * spells with exponential lengths the last is four times the longest before it
 * with a chance of 24 / (m + 1)(m + 2)(m + 3)(m + 4) only.
 *
 * A name also needs: intervals of the median excess (order statistics, 3.7
 * sigma of the sign test, widened by tau) that lie above those of every other
 * rank; at least 32 steps (192 where there is no time before to compare with)
 * and one second; and that it costs: the others wait in collectives longer
 * than the rank itself by at least half of its excess. Overlap is too_close, a
 * notice; fewer than three peers or many lost events is insufficient, a notice.
 *
 * The onset is the split of the rank's excess that minimises the sum of
 * absolute deviations from the two medians.
 *
 * Neighbours it must not be taken for: slow.global (all move together: no
 * position changes), slow.rotating_* (tau grows with the dwell), pauses (a few
 * steps cannot outweigh the others), slow.fixed_host (half of the ranks or more
 * cannot be named).
 */
#pragma once

#include "../facts.h"

struct slow_config {
	double effect_ratio; /* of the step; 0 = 0.05 */
	double alpha;	     /* chance of a false name in a run; 0 = 1e-6 */
	uint32_t n_window;   /* steps kept; 0 = by world size: 256 .. 1024 */
	/* The name of a rank's host for the sentence, or NULL. */
	const char *(*host_of)(void *arg, int32_t rank);
	/* What other rules know; each may be NULL. explained: somebody told why it is slow.
	 * throttled: its device says so, the reason goes to why. named: it is told. */
	bool (*explained)(void *arg, int32_t rank);
	bool (*throttled)(void *arg, int32_t rank, char *why, size_t n_why);
	void (*named)(void *arg, const char *class_name, const int32_t *ranks, uint32_t n,
		      uint32_t first_step);
	void *arg;
};

struct slow_fixed_rank;
int slow_fixed_rank_new(struct slow_fixed_rank **ret, const struct slow_config *cfg);
void slow_fixed_rank_free(struct slow_fixed_rank *s);

/* The ranks of one step; steps in growing order (others are ignored). Verdicts
 * that are new or changed are appended to facts (NULL: kept quiet, as when old
 * rows are fed after a restart). 0 or -ENOMEM. */
int slow_fixed_rank_step(struct slow_fixed_rank *s, uint32_t step, uint32_t world_size,
			 const struct fact_rank_step *v, size_t n, struct facts *facts);
/* Tell everything that stands once more, with its last numbers. */
int slow_fixed_rank_finish(struct slow_fixed_rank *s, struct facts *facts);
