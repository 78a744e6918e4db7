/* sim_internal.h - what the collector in this process (sim.c) and the agents that
 * speak to it (agents.c) share. */
#pragma once

#include "sim.h"
#include "tale.h"

#include "../collector/core.h"
#include "../collector/ingest.h"
#include "../proto/frame.h"

struct mouth { /* a rank, as far as its agent has told of it */
	struct tale tale;
	uint32_t agent, proc, local_rank;
	size_t at[TALE_RINGS], n_texts, n_gauges;
	uint32_t n_names;
	bool left;
	uint64_t parcel; /* the last one that states the process */
};

struct sim_agent {
	const char *host;
	char boot_id[FRAME_MAX_ID + 1];
	uint8_t id[16];
	int64_t offset_ns;
	double drift_ppm;
	int64_t set_ns, set_by_ns; /* when its clock is set, and by how much */
	bool same_clock;
	uint32_t *ranks, n_ranks, n_ranks_alloc;
	uint64_t stream, seq;
	struct frame_exchange open, last; /* open: t3 is not known yet */
};

struct sim {
	const struct play *play;
	const struct spec *spec;
	const struct sim_config *cfg;
	struct sim_result *result;
	char *why;
	size_t n_why;
	bool failed, no_memory;

	struct mouth *mouths; /* by rank */
	struct sim_agent *agents;
	uint32_t n_agents;
	uint64_t rng;

	struct store *store;
	struct core *core;
	struct ingest *ingest;
	struct store_job *jobs; /* submitted, not written; newest last */
	int64_t now_ns, spoke_ns, beat_ns; /* the case's time; when agents last told something, beat */
	uint64_t n_parcels;
	struct sim_msg *unanswered;
};

/* One message of an agent, alive until it is answered. */
struct sim_msg {
	struct inbox_msg msg; /* first: ingest gives this one back */
	struct sim_msg *next, *before; /* of all that are not answered */
	struct frame_buf buf;
	struct sim_agent *agent;
};

/* agents.c */
bool agents_make(struct sim *s);
void agents_free(struct sim *s);
bool agents_hello(struct sim *s);
/* Clock readings of the hosts that need them. */
bool agents_beat(struct sim *s);
/* Everything that happened before `until_ns`. */
bool agents_ship(struct sim *s, int64_t until_ns);
/* When happens the first thing that was not shipped? PLAY_NEVER: nothing does. */
int64_t agents_next_ns(const struct sim *s);
/* An answer of the collector. */
void agents_answer(struct sim *s, struct sim_agent *a, const struct frame *f);

/* sim.c */
bool sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Gives the frame to the collector; `late_ns` after now it is there. */
bool sim_send(struct sim *s, struct sim_agent *a, const struct frame *f, int64_t late_ns);
