/* slow_fixed_rank_internal.h - what the files of slow.fixed_rank share. */
#pragma once

#include "slow_fixed_rank.h"

#define N_SHAPES 4 /* f(r) ~ ((r + 1) / n)^(2^k - 1) for k = 1 .. 4 */
#define TAU_MIN 2.0
#define END_NATS 14.0 /* evidence that a slow rank is slow no more */
#define MAX_CULPRITS 64

enum part { PART_INPUT, PART_FORWARD, PART_BACKWARD, PART_OPTIMIZER, PART_OTHER, N_PARTS };

struct sample { /* of one rank in one step, ns; self < 0 = not there */
	float self, exposed, coverage;
	float part[N_PARTS];
	float excess;	/* over the median of the others, of the step's duration */
	float position; /* the part of the others that it is slower than by the effect */
};

struct suspect {
	double sum[N_SHAPES]; /* ln of the product since start */
	double peak[N_SHAPES];
	uint32_t start[N_SHAPES]; /* count of steps */
	double end_sum;
	uint32_t end_start;
	uint32_t next_look;
	bool standing; /* in a verdict that has not ended */
};

struct standing {
	char key[96];
	int32_t ranks[MAX_CULPRITS];
	uint32_t n_ranks;
	uint32_t onset, first_onset; /* counts of steps: now, and as told first */
	uint32_t first_step, last_step;
	int64_t onset_ns, detected_ns;
	uint32_t next_tell;
	bool ended, changed, notice;
	/* last numbers that held */
	enum fact_confidence confidence;
	double excess, cost, margin_ns, error_ns, step_ns, wait_ns, self_ratio, excess_ns;
	double part_ns[N_PARTS];
	double tau, coverage;
	uint32_t n_peers, n_steps;
};

struct slow_fixed_rank {
	struct slow_config cfg;
	uint32_t n_ranks;  /* of the arrays */
	uint32_t n_window; /* power of two */
	uint32_t n_steps;  /* fed so far: the count that names a step here */
	uint32_t last_step;
	uint32_t *step_of; /* by count & (n_window - 1) */
	int64_t *begin_of, *end_of;
	float *dur_of;
	struct sample *samples; /* [slot][rank] */
	struct suspect *suspects;
	double passed[N_SHAPES]; /* the highest peak that came to nothing */
	struct standing *standing;
	size_t n_standing, n_standing_alloc;
	double *table; /* ln f by shape and position, for n_table ranks */
	uint32_t n_table;
	double *scratch;
	size_t n_scratch;
};

struct look {
	uint32_t onset; /* count */
	uint32_t n;	/* steps since, in the window */
	double tau, coverage;
	double excess, low, high; /* of the step: median and its interval */
	double other, other_high; /* the worst of the others */
	double cost_share;	  /* what the others wait for it, of its excess */
	double step_ns, added_ns, wait_ns;
	double part_ns[N_PARTS];
	double self_ratio;
	uint32_t n_peers;
};

static inline uint32_t slow_slot(const struct slow_fixed_rank *s, uint32_t count)
{
	return count & (s->n_window - 1);
}

static inline struct sample *slow_sample(const struct slow_fixed_rank *s, uint32_t count,
					 uint32_t rank)
{
	return &s->samples[(size_t)slow_slot(s, count) * s->n_ranks + rank];
}

static inline uint32_t slow_window_begin(const struct slow_fixed_rank *s)
{
	return s->n_steps > s->n_window ? s->n_steps - s->n_window : 0;
}

/* slow_fixed_rank.c */
void slow_sort(double *v, size_t n);
/* Of sorted values. */
double slow_median(const double *v, size_t n);
bool slow_is_culprit(const struct slow_fixed_rank *s, uint32_t rank, double limit);

/* slow_fixed_rank_look.c: false when there are too few steps to say anything. */
bool slow_look(struct slow_fixed_rank *s, uint32_t rank, uint32_t near, double limit,
	       struct look *ret);

/* slow_fixed_rank_words.c */
int slow_tell(struct slow_fixed_rank *s, struct standing *v, struct facts *facts);

/* slow_fixed_rank_judge.c */
int slow_judge(struct slow_fixed_rank *s, uint32_t rank, uint32_t near, double sum, double limit,
	       struct facts *facts);
/* Standing verdicts: still so, or over? */
int slow_review(struct slow_fixed_rank *s, struct facts *facts);
