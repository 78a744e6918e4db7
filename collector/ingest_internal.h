/* ingest_internal.h - what ingest.c and its helpers share. */
#pragma once

#include "ingest.h"
#include "peers.h"

#include "core.h"
#include "../proto/chunk.h"

struct ingest {
	struct ingest_config cfg;
	char run_id[FRAME_MAX_ID + 1]; /* "" = not known yet */
	char token[FRAME_MAX_ID + 1];
	char boot_id[40];
	int64_t fleet_minus_raw_ns;
	struct row_run run;
	struct peers peers;
	struct core *core;

	struct store_job *job; /* being filled; owned, never NULL */
	struct store_job *idle; /* owned, reused */
	uint64_t next_chunk;
	uint64_t low_water; /* as last handed over */

	unsigned n_held; /* batches that wait for their turn */
	bool stopping;
	int fatal;

	uint64_t n_events, n_gap, n_dropped, n_text_dropped, n_names_dropped;
	int64_t last_event_ns;
	uint32_t n_ranks_alive, n_ranks_seen;
	int64_t started_raw_ns; /* of this collector process */

	struct ingest_rank_change changes[256];
	size_t n_changes;

	/* Sentences a minute: a peer must not fill the log. */
	int64_t say_since_raw_ns;
	unsigned n_said;

	struct event decoded[CHUNK_MAX_EVENTS];
	struct frame_buf out;
};

/* A sentence to the collector's log and to the catalogue's. */
void ingest_notice(struct ingest *g, int64_t now_raw_ns, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* texts.c */
int ingest_text(struct ingest *g, struct process *p, const struct frame_text *t);
