/* replay.h - a job's operations once more, in virtual time, with other durations.
 *
 * An operation begins when everything it comes after has ended; operations that
 * are joined (a collective's members, a message's two ends) all begin their
 * transfer when the last of them is there. How long each takes on its own is the
 * caller's: what was measured, or what would be if. Nothing else moves, so what
 * differs between two replays is what the changed durations did to the job.
 *
 * Steps are replayed apart, each from 0: the time of a step is that of its last
 * operation. Pure; memory and time grow with operations and edges alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLAY_ALONE UINT32_MAX	  /* joined with nobody */
#define REPLAY_MAX_OPS (1u << 24) /* and edges: 4 times as many */
#define REPLAY_MAX_NS (INT64_C(1) << 53)

struct replay_op {
	int64_t ns; /* measured; of a joined one from when the last was there */
	uint32_t step;	/* numbered from 0 without gaps, in any order */
	uint32_t place; /* who: the caller's number of a worker */
	uint32_t kind;	/* what is alike, numbered from 0 */
	uint32_t join;	/* the same on all that are joined, numbered from 0 */
};

enum replay_outcome {
	REPLAY_OK = 0,
	REPLAY_CYCLE,	 /* operations wait for each other: this never ends */
	REPLAY_TOO_MANY, /* more than the limits above */
};

struct replay;

int replay_new(struct replay **ret); /* 0 or -ENOMEM */
void replay_free(struct replay *r);  /* NULL is fine */

/* The new operation's index is *ret. 0, REPLAY_TOO_MANY or -ENOMEM. */
int replay_add(struct replay *r, const struct replay_op *op, uint32_t *ret);
/* op begins when before has ended. Same outcomes. */
int replay_after(struct replay *r, uint32_t op, uint32_t before);
/* Once, before the first run; nothing may be added behind it. */
int replay_order(struct replay *r);

uint32_t replay_n_ops(const struct replay *r);
uint32_t replay_n_steps(const struct replay *r);
const struct replay_op *replay_at(const struct replay *r, uint32_t op);

/* How long that operation takes in this replay. */
typedef int64_t (*replay_ns_fn)(const void *arg, uint32_t i, const struct replay_op *op);

/* The sum of all steps' times. ret_steps: the time of each, may be NULL. */
int64_t replay_run(struct replay *r, replay_ns_fn ns, const void *arg, int64_t *ret_steps);
