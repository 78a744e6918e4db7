/* batch.h - one message under construction.
 *
 * Everything that is put in is copied, so the shared file may change or vanish
 * afterwards. Bounded in bytes and in elements; what does not fit is refused
 * and the caller seals first. Allocated once.
 */
#pragma once

#include "../../proto/chunk.h"
#include "../../proto/frame.h"

#define BATCH_MAX_CHUNKS 1024
#define BATCH_MAX_NAMES 2048
#define BATCH_MAX_TEXTS 512
#define BATCH_MAX_GAUGES 1024
#define BATCH_MAX_SNAPSHOTS 64
#define BATCH_MAX_PEER_EXCHANGES 256

struct batch {
	unsigned char *arena;
	size_t n_arena, n_bytes; /* used of it; estimate of the packed size */
	uint64_t n_events;
	struct frame_proc procs[FRAME_MAX_PROCS];
	struct frame_name *names;
	struct frame_chunk *chunks;
	struct frame_text *texts;
	struct frame_gauge *gauges;
	struct frame_snapshot snapshots[BATCH_MAX_SNAPSHOTS];
	struct frame_peer_exchange peer_exchanges[BATCH_MAX_PEER_EXCHANGES];
	uint32_t n_procs, n_names, n_chunks, n_texts, n_gauges, n_snapshots;
	uint32_t n_peer_exchanges;
};

int batch_init(struct batch *b); /* 0 or -ENOMEM */
void batch_fini(struct batch *b);
void batch_clear(struct batch *b);
bool batch_empty(const struct batch *b);
bool batch_full(const struct batch *b); /* as large as a message is aimed at */

/* All return false when it has to be sealed first. Host times in the events;
 * 1 <= n <= CHUNK_EVENTS. gauge names are static strings or live until sealed. */
bool batch_add_chunk(struct batch *b, uint32_t proc, uint32_t ring, uint64_t first,
		     const struct event *ev, size_t n);
bool batch_add_name(struct batch *b, uint32_t proc, uint32_t id, const char *text, size_t n_text);
bool batch_add_text(struct batch *b, const struct frame_text *t);
bool batch_add_gauge(struct batch *b, uint32_t proc, int64_t at_ns, const char *name,
		     double value);
bool batch_add_proc(struct batch *b, const struct frame_proc *p);
bool batch_add_snapshot(struct batch *b, const struct frame_snapshot *v);
bool batch_add_peer_exchange(struct batch *b, const struct frame_peer_exchange *v);

/* The frame of it; pointers into b. stream, seq and agent_id are the caller's. */
struct frame batch_frame(const struct batch *b);
