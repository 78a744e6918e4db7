/* rank_steps.h - many kinds of job as rank-step facts: healthy, noisy, and with a planted cause.
 *
 * Steps are synchronised: each lasts as long as its slowest rank and a transfer,
 * and a rank that is done waits. All is drawn from one seed.
 */
#pragma once

#include "../../collector/facts.h"

enum noise {
	NOISE_CALM,	 /* ± 3 % */
	NOISE_HALF,	 /* ± 50 % a step and rank */
	NOISE_TAIL,	 /* log-normal, sigma 0.5 */
	NOISE_CONTENDED, /* half as many cores as ranks: who shares is slow, and stays so a while */
	NOISE_SMOOTH,	 /* autoregressive, 0.8 a step, ± 50 % */
	NOISE_SHARED,	 /* long and short steps for all, ± 5 % by rank */
	N_NOISES,
};
extern const char *const noise_names[];

enum cause {
	CAUSE_NONE,
	/* must stay silent */
	CAUSE_PAUSES,	    /* any rank now and then, ten times the step */
	CAUSE_PAUSES_FIXED, /* always the same rank, one step in twelve */
	CAUSE_ROTATE_1,	    /* half as slow again, moving every step … */
	CAUSE_ROTATE_10,    /* … every 10 steps … */
	CAUSE_ROTATE_40,    /* … every 40 */
	CAUSE_WANDER,	    /* moves to a random rank after 25 steps on average, 100 or so at most */
	CAUSE_GLOBAL,	    /* all ranks from the onset on */
	CAUSE_RESTLESS,	    /* one rank with four times the noise, same median */
	CAUSE_SMALL,	    /* one rank, 2 % */
	CAUSE_HALF_OF_ALL,  /* half of the ranks, from the onset on */
	CAUSE_DRIFT,	    /* all get slower by and by */
	/* must be named */
	CAUSE_SLOW, /* one rank by `by`, from the onset on */
	CAUSE_TWO,  /* two ranks */
	CAUSE_ENDS, /* one rank, for 150 steps */
	N_CAUSES,
};
extern const char *const cause_names[];

struct rank_steps {
	enum noise noise;
	enum cause cause;
	uint32_t world, onset;
	int32_t rank; /* the culprit; the second is the next one */
	double by;
	int phase; /* 0 input, 1 forward, 2 backward, 3 optimizer: where it is slow */

	uint64_t rng;
	uint32_t step, spell;
	int64_t now_ns;
	double state[512];
	int32_t wanderer;
	uint64_t seed;
};

void rank_steps_init(struct rank_steps *s, uint64_t seed);
/* The facts of the next step, v[0 .. world). */
void rank_steps_next(struct rank_steps *s, struct fact_rank_step *v);
