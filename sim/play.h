/* play.h - what a case does when it runs: every piece of work with its start and
 * end in virtual time.
 *
 * A rank is a host thread and streams; each piece of work is a node that begins
 * when what it depends on has ended. A collective ends on all its ranks when
 * its last member has begun, a message when both sides have. Times are found by
 * following what has ended to what waited for it: a node that is never reached
 * never begins, so a deadlock needs no rule of its own. Nothing here knows of
 * probes, clocks or collectors.
 */
#pragma once

#include "spec.h"

#define PLAY_MAX_NODES (1u << 20)
#define PLAY_VISITS_A_NODE 16 /* operations looked at, those that do nothing too */
#define PLAY_MAX_NS INT64_C(2592000000000000) /* 30 days */
#define PLAY_NEVER INT64_MAX
#define PLAY_LAUNCH_NS 10000
#define PLAY_NONE UINT32_MAX

enum play_kind {
	PLAY_LAUNCH, /* the host's part of work for a stream: ends when it is enqueued */
	PLAY_CPU,
	PLAY_STALL, /* never ends */
	PLAY_SYNC,  /* the host waits for all streams */
	PLAY_BLOCK, /* the host waits for one collective or message */
	PLAY_MARK,  /* a step, record or gauge: an instant */
	PLAY_EXIT,  /* the host's program is over */
	PLAY_KERNEL,
	PLAY_COLL,
	PLAY_P2P,
};

static inline bool play_is_device(enum play_kind kind)
{
	return kind >= PLAY_KERNEL;
}

struct play_node {
	uint8_t kind; /* enum play_kind */
	uint8_t phase; /* 1f1b: 1 forward, 2 backward */
	uint16_t stream;
	uint32_t rank, step; /* event.h's EVENT_STEP_UNKNOWN before the first */
	uint32_t launch; /* device work of this rank, from 1; of the host's part too */
	uint32_t group, call; /* coll; calls of a group count from 1 */
	uint32_t micro;
	uint32_t first_pair, n_pairs;	/* p2p: play->pairs */
	uint32_t target;		/* block: the node; launch: its device node */
	uint32_t first_wait, n_waits;	/* device: play->waits, nodes of other streams */
	const struct spec_op *op;	/* NULL: of a 1f1b */
	const char *name;
	uint64_t count;
	int64_t dur_ns; /* of the node, or of the transfer */
	int64_t start_ns, end_ns; /* PLAY_NEVER */
};

struct play_pair {
	bool send;
	uint32_t peer;
	uint32_t number; /* in its direction between the two ranks, from 1 */
	uint64_t count;
};

struct play {
	const struct spec *spec;
	struct play_node *nodes; /* by rank, in the order of its program */
	uint32_t n_nodes;
	uint32_t *first_node; /* by rank; [world] = n_nodes */
	struct play_pair *pairs;
	uint32_t n_pairs;
	uint32_t *waits;
	uint32_t n_waits;
	uint32_t *n_calls; /* by group: the most that a member makes */
	uint32_t n_streams; /* the most of a rank */
	int64_t end_ns;	    /* the last thing that happens */
	uint32_t n_stuck;   /* nodes that have begun and do not end */
};

enum play_outcome {
	PLAY_OK = 0,
	PLAY_REFUSED, /* why says what */
};

/* max_nodes: 0 = PLAY_MAX_NODES. 0, PLAY_REFUSED or -ENOMEM. */
int play_run(struct play **ret, const struct spec *s, uint32_t max_nodes, char *why, size_t n_why);
void play_free(struct play *p); /* NULL is fine */
