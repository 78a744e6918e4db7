#include "rank_steps.h"
#include "train.h"

#include <math.h>

const char *const noise_names[] = { "calm 3 %",   "half 50 %",	"log-normal",
				    "contended", "smooth 50 %", "shared" };
const char *const cause_names[] = { "healthy",	   "pauses",	"pauses of one rank", "rotating 1",
				    "rotating 10", "rotating 40", "wandering",	      "global",
				    "restless",	   "2 % only",	"half of all",	      "drift",
				    "slow",	   "two slow",	"slow for 150" };

static double normal(uint64_t *rng)
{
	return sqrt(-2 * log(1 - train_unit(rng))) * cos(6.283185307179586 * train_unit(rng));
}

void rank_steps_init(struct rank_steps *s, uint64_t seed)
{
	s->seed = seed;
	s->rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	s->step = s->spell = 0;
	s->now_ns = INT64_C(1700000000000000000);
	s->wanderer = (int32_t)(train_rand(&s->rng) % s->world);
	for (uint32_t r = 0; r < s->world; r++)
		s->state[r] = 0;
}

static double noise(struct rank_steps *s, uint32_t rank)
{
	switch (s->noise) {
	case NOISE_HALF:
		return 1 + 0.5 * (2 * train_unit(&s->rng) - 1);
	case NOISE_TAIL:
		return exp(0.5 * normal(&s->rng));
	case NOISE_CONTENDED: /* alone on a core or sharing it, for ten steps or so */
		if (train_unit(&s->rng) < 0.1 || s->step == 0)
			s->state[rank] = train_unit(&s->rng) < 0.5 ? 0.25 : 0.75;
		return 0.6 + s->state[rank] * (0.8 + 0.4 * train_unit(&s->rng));
	case NOISE_SMOOTH:
		s->state[rank] = 0.8 * s->state[rank] + 0.6 * 0.29 * normal(&s->rng);
		return exp(s->state[rank]);
	case NOISE_SHARED:
		return 1 + 0.05 * (2 * train_unit(&s->rng) - 1);
	case NOISE_CALM:
	case N_NOISES:
	default:
		return 1 + 0.03 * (2 * train_unit(&s->rng) - 1);
	}
}

/* How much longer this rank takes in this step. */
static double slowness(struct rank_steps *s, uint32_t rank)
{
	bool on = s->step >= s->onset, culprit = (int32_t)rank == s->rank;

	switch (s->cause) {
	case CAUSE_PAUSES:
		return train_unit(&s->rng) < 0.01 ? 10 : 1;
	case CAUSE_PAUSES_FIXED:
		return culprit && s->step % 12 == 5 ? 8 : 1;
	case CAUSE_ROTATE_1:
		return s->step % s->world == rank ? 1.5 : 1;
	case CAUSE_ROTATE_10:
		return s->step / 10 % s->world == rank ? 1.5 : 1;
	case CAUSE_ROTATE_40:
		return s->step / 40 % s->world == rank ? 1.5 : 1;
	case CAUSE_WANDER:
		if (rank == 0 && (train_unit(&s->rng) < 0.04 || ++s->spell > 100)) {
			int32_t next = (int32_t)(train_rand(&s->rng) % s->world);

			if (next != s->wanderer)
				s->spell = 0;
			s->wanderer = next;
		}
		return (int32_t)rank == s->wanderer ? 1.5 : 1;
	case CAUSE_GLOBAL:
		return on ? 1.6 : 1;
	case CAUSE_RESTLESS:
		return culprit ? exp(0.4 * normal(&s->rng)) : 1;
	case CAUSE_SMALL:
		return culprit && on ? 1.02 : 1;
	case CAUSE_HALF_OF_ALL:
		return on && rank >= s->world / 2 ? 1.3 : 1;
	case CAUSE_DRIFT:
		return 1 + 0.001 * s->step;
	case CAUSE_SLOW:
		return culprit && on ? 1 + s->by : 1;
	case CAUSE_TWO:
		return on && (culprit || (int32_t)rank == s->rank + 1) ? 1 + s->by : 1;
	case CAUSE_ENDS:
		return culprit && on && s->step < s->onset + 150 ? 1 + s->by : 1;
	case CAUSE_NONE:
	case N_CAUSES:
	default:
		return 1;
	}
}

void rank_steps_next(struct rank_steps *s, struct fact_rank_step *v)
{
	static const double share[4] = { 0.05, 0.3, 0.55, 0.1 }; /* of 40 ms */
	double common = s->noise == NOISE_SHARED ? 0.4 + 1.2 * train_unit(&s->rng) : 1;
	int64_t longest = 0;

	for (uint32_t r = 0; r < s->world; r++) {
		double base = 40e6 * common * noise(s, r), slow = slowness(s, r) - 1;
		int64_t part[4], self = 0;

		for (int p = 0; p < 4; p++) {
			part[p] = (int64_t)(base * (share[p] + (p == s->phase ? slow : 0)));
			self += part[p];
		}
		v[r] = (struct fact_rank_step){ .step = s->step, .rank = (int32_t)r,
						.begin_ns = s->now_ns, .self_ns = self,
						.input_wait_ns = part[0], .fwd_ns = part[1],
						.bwd_ns = part[2], .opt_ns = part[3],
						.n_peers = s->world - 1, .coverage = 1 };
		if (self > longest)
			longest = self;
	}
	for (uint32_t r = 0; r < s->world; r++) {
		v[r].dur_ns = longest + 3000000;
		v[r].exposed_comm_ns = v[r].dur_ns - v[r].self_ns;
		v[r].wait_ns = longest - v[r].self_ns;
	}
	s->now_ns += longest + 3000000;
	s->step++;
}
