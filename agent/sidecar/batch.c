#include "batch.h"

#include "../../proto/shm.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A message is aimed at FRAME_BATCH_BYTES. Room for one chunk beyond it keeps
 * every put of a batch that is not full from failing halfway. */
#define ARENA_BYTES (FRAME_BATCH_BYTES + CHUNK_MAX_BYTES(CHUNK_EVENTS) + SHM_MAX_TEXT)
#define PROC_BYTES (18 * 6)
#define SNAPSHOT_BYTES (5 * 9 + 6)
#define PEER_EXCHANGE_BYTES (4 * 9 + 5)

int batch_init(struct batch *b)
{
	memset(b, 0, sizeof *b);
	b->arena = malloc(ARENA_BYTES);
	b->names = calloc(BATCH_MAX_NAMES, sizeof *b->names);
	b->chunks = calloc(BATCH_MAX_CHUNKS, sizeof *b->chunks);
	b->texts = calloc(BATCH_MAX_TEXTS, sizeof *b->texts);
	b->gauges = calloc(BATCH_MAX_GAUGES, sizeof *b->gauges);
	if (b->arena && b->names && b->chunks && b->texts && b->gauges)
		return 0;
	batch_fini(b);
	return -ENOMEM;
}

void batch_fini(struct batch *b)
{
	free(b->arena);
	free(b->names);
	free(b->chunks);
	free(b->texts);
	free(b->gauges);
	memset(b, 0, sizeof *b);
}

void batch_clear(struct batch *b)
{
	b->n_arena = b->n_bytes = 0;
	b->n_events = 0;
	b->n_procs = b->n_names = b->n_chunks = b->n_texts = b->n_gauges = b->n_snapshots = 0;
	b->n_peer_exchanges = 0;
}

bool batch_empty(const struct batch *b)
{
	return b->n_procs + b->n_names + b->n_chunks + b->n_texts + b->n_gauges + b->n_snapshots +
		       b->n_peer_exchanges ==
	       0;
}

bool batch_full(const struct batch *b)
{
	return b->n_bytes + CHUNK_EVENTS * 16 > FRAME_BATCH_BYTES;
}

static unsigned char *room(struct batch *b, size_t n)
{
	if (n > ARENA_BYTES - b->n_arena)
		return NULL;
	return b->arena + b->n_arena;
}

static const char *keep(struct batch *b, const char *text, size_t n)
{
	unsigned char *p = room(b, n);

	if (!p)
		return NULL;
	memcpy(p, text, n);
	b->n_arena += n;
	return (const char *)p;
}

bool batch_add_chunk(struct batch *b, uint32_t proc, uint32_t ring, uint64_t first,
		     const struct event *ev, size_t n)
{
	unsigned char *p = room(b, CHUNK_MAX_BYTES(n));
	size_t n_bytes;

	assert(n >= 1 && n <= CHUNK_EVENTS);
	if (!p || b->n_chunks == BATCH_MAX_CHUNKS || batch_full(b))
		return false;
	n_bytes = chunk_encode(ev, n, p);
	b->n_arena += n_bytes;
	b->n_bytes += n_bytes + 16;
	b->n_events += n;
	b->chunks[b->n_chunks++] = (struct frame_chunk){
		.proc = proc, .ring = ring, .first = first, .data = p, .n_bytes = n_bytes };
	return true;
}

bool batch_add_name(struct batch *b, uint32_t proc, uint32_t id, const char *text, size_t n_text)
{
	const char *p;

	if (b->n_names == BATCH_MAX_NAMES || batch_full(b))
		return false;
	p = keep(b, text, n_text);
	if (!p)
		return false;
	b->n_bytes += n_text + 16;
	b->names[b->n_names++] = (struct frame_name){
		.proc = proc, .id = id, .text = p, .n_text = (uint32_t)n_text };
	return true;
}

bool batch_add_text(struct batch *b, const struct frame_text *t)
{
	const char *p;

	if (b->n_texts == BATCH_MAX_TEXTS || batch_full(b))
		return false;
	p = keep(b, t->text, t->n_text);
	if (!p)
		return false;
	b->n_bytes += t->n_text + 24;
	b->texts[b->n_texts] = *t;
	b->texts[b->n_texts++].text = p;
	return true;
}

bool batch_add_gauge(struct batch *b, uint32_t proc, int64_t at_ns, const char *name, double value)
{
	if (b->n_gauges == BATCH_MAX_GAUGES || batch_full(b))
		return false;
	b->n_bytes += strlen(name) + 28;
	b->gauges[b->n_gauges++] = (struct frame_gauge){
		.proc = proc, .at_ns = at_ns, .name = name, .value = value };
	return true;
}

bool batch_add_proc(struct batch *b, const struct frame_proc *p)
{
	if (b->n_procs == FRAME_MAX_PROCS)
		return false;
	b->n_bytes += PROC_BYTES;
	b->procs[b->n_procs++] = *p;
	return true;
}

bool batch_add_snapshot(struct batch *b, const struct frame_snapshot *v)
{
	if (b->n_snapshots == BATCH_MAX_SNAPSHOTS || batch_full(b))
		return false;
	b->n_bytes += SNAPSHOT_BYTES;
	b->snapshots[b->n_snapshots++] = *v;
	return true;
}

bool batch_add_peer_exchange(struct batch *b, const struct frame_peer_exchange *v)
{
	if (b->n_peer_exchanges == BATCH_MAX_PEER_EXCHANGES || batch_full(b))
		return false;
	b->n_bytes += PEER_EXCHANGE_BYTES;
	b->peer_exchanges[b->n_peer_exchanges++] = *v;
	return true;
}

struct frame batch_frame(const struct batch *b)
{
	return (struct frame){
		.type = FRAME_BATCH,
		.batch = {
			.n_procs = b->n_procs,
			.n_names = b->n_names,
			.n_chunks = b->n_chunks,
			.n_texts = b->n_texts,
			.n_gauges = b->n_gauges,
			.n_snapshots = b->n_snapshots,
			.n_peer_exchanges = b->n_peer_exchanges,
			.procs = b->procs,
			.names = b->names,
			.chunks = b->chunks,
			.texts = b->texts,
			.gauges = b->gauges,
			.snapshots = b->snapshots,
			.peer_exchanges = b->peer_exchanges,
		},
	};
}
