/* ingest.h - what agents say, checked, put in order, told to the core, handed to
 * the store, and answered once it is on the disk.
 *
 * Loop thread only. Nothing here reads a clock or talks to a socket: time and
 * carriers are parameters, so that every hard case is a unit test.
 *
 * What a peer says is not believed. A batch is checked as a whole before any of
 * it counts; batches of an agent are taken in the order of their numbers (NNG's
 * threads may swap them); a ring's events are taken by index: repeats are
 * trimmed, holes are counted as lost and may be filled later.
 */
#pragma once

#include "inbox.h"
#include "store/store.h"

struct core;
struct ingest;

struct ingest_config {
	struct core *core;
	const char *run_id; /* NULL or "": the first agent names the run */
	const char *token;  /* NULL or "": none wanted */
	uint32_t level;	    /* enum level, told to agents; beyond LEVEL_MAX = no opinion */
	/* The collector's own clock (clk.h). */
	const char *boot_id;
	uint64_t time_ns_inode;
	int64_t raw_ns, real_ns; /* one instant on both clocks, now */

	/* Give an answer, or take the message back without one (data == NULL). */
	void (*reply)(void *arg, struct inbox_msg *m, const void *data, size_t n_bytes);
	/* A job to write; it comes back through ingest_done(). */
	void (*submit)(void *arg, struct store_job *j);
	/* An enum store_outcome: why nothing can be committed now. */
	int (*trouble)(void *arg);
	/* Data messages that could be taken now. */
	unsigned (*n_free)(void *arg);
	/* A sentence for the collector's log. */
	void (*say)(void *arg, const char *sentence);
	void *arg;
};

/* 0 or -ENOMEM. */
int ingest_new(struct ingest **ret, const struct ingest_config *cfg);
void ingest_free(struct ingest *g); /* NULL is fine */

enum ingest_outcome {
	INGEST_OK = 0,
	INGEST_OTHER_RUN, /* the file holds another run than run_id */
};
/* After a restart: what the file knows becomes what we know, and the core sees
 * again what its open steps need. 0, an ingest_outcome << 8, a store_outcome or
 * -ENOMEM. */
#define INGEST_OUTCOME(o) ((o) << 8)
int ingest_load(struct ingest *g, struct store *s);

void ingest_message(struct ingest *g, struct inbox_msg *m, int64_t now_raw_ns);
/* All messages of a turn were given: hand over what they brought. */
void ingest_turn_over(struct ingest *g);
/* At least ten times a second: time passes for the core and for what waits. */
void ingest_tick(struct ingest *g, int64_t now_raw_ns);
/* The store is done with j: answer what waited for it. */
void ingest_done(struct ingest *g, struct store_job *j);
/* No more messages: what is held is taken, the core closes if the run ended, the
 * last job is submitted. */
void ingest_finish(struct ingest *g, int64_t now_raw_ns);
/* Out of memory half way: what is in memory may not be stored any more. */
int ingest_fatal(const struct ingest *g);

/* Where agents' clock probes are taken (responder.h), told with each welcome; 0 = nowhere. */
void ingest_set_probe_port(struct ingest *g, uint16_t port);
/* Agents that are probed also probe n others each. 0 or a negative errno. */
int ingest_set_peers(struct ingest *g, unsigned n);

int64_t ingest_fleet_ns(const struct ingest *g, int64_t raw_ns);
const char *ingest_run_id(const struct ingest *g); /* "" = not known yet */

struct ingest_status {
	int64_t last_event_ns; /* fleet; FACT_NONE = none yet */
	uint32_t n_agents, n_agents_lost;
	uint32_t n_ranks, n_ranks_seen, n_ranks_expected;
	uint32_t n_hosts, n_hosts_by_stream;
	uint64_t n_events, n_events_lost, n_drops;
	double agent_cpu_ratio; /* NaN unknown */
	bool ended;
};
void ingest_status(const struct ingest *g, int64_t now_raw_ns, struct ingest_status *ret);

/* Ranks whose state changed since the last call, for the page. */
struct ingest_rank_change {
	int32_t rank;
	enum row_state state;
};
size_t ingest_take_changes(struct ingest *g, struct ingest_rank_change *out, size_t max);
