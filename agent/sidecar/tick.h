/* tick.h - from a CPU counter to host CLOCK_MONOTONIC_RAW nanoseconds.
 *
 * The guest writes raw counter values because reading the counter is all it can
 * afford. The agent reads (counter, RAW) pairs on the same host and lays a
 * continuous, strictly rising line through them: an event's time never depends
 * on when it was converted, and order is kept. Each conversion has an error
 * bound made of the pairs' own brackets.
 *
 * Pure: pairs are a parameter, tick_read_pair() is the only clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Between two reads of the counter that RAW was read between: raw_ns happened
 * at `tick`, give or take err_ns and err_ticks, whichever is more. */
struct tick_pair {
	uint64_t tick;
	int64_t raw_ns, err_ns;
	uint64_t err_ticks; /* what counts while the rate is not known */
};

#define TICK_N_PAIRS 64 /* the rate is measured over this many */
#define TICK_N_LINES 16 /* a backlog this many pairs old is still exact */

struct tick_line {
	uint64_t from_tick;
	int64_t from_ns;
	double ns_per_tick;
	double rate_err; /* relative: how wrong ns_per_tick may be */
	double bend;	 /* relative: how far it leans to where the truth was */
	int64_t err_ns;	 /* at from_tick */
};

struct tick {
	bool identity; /* ticks are RAW nanoseconds already */
	struct tick_pair pairs[TICK_N_PAIRS];
	unsigned n_pairs, next_pair;
	struct tick_line lines[TICK_N_LINES]; /* lines[0] is the newest */
	unsigned n_lines;
	uint64_t n_jumps; /* the counter and RAW disagreed by more than a millisecond */
};

void tick_init(struct tick *t, unsigned source); /* enum shm_tick */
bool tick_ready(const struct tick *t);		 /* identity, or two pairs were added */
/* How soon after a pair the next one is due: a line reaches no further ahead than
 * it was measured back, a second at most. */
int64_t tick_next_pair_ns(const struct tick *t);
void tick_add_pair(struct tick *t, const struct tick_pair *p);

int64_t tick_to_ns(const struct tick *t, uint64_t tick);
/* The conversion of this tick is not further than this from the truth. */
int64_t tick_error_ns(const struct tick *t, uint64_t tick);

/* Can this machine read that counter? RAW always. */
bool tick_readable(unsigned source);
uint64_t tick_counter(unsigned source); /* its value now */
/* The tightest of n brackets around one read of RAW. */
struct tick_pair tick_read_pair(unsigned source, unsigned n, double ns_per_tick);
