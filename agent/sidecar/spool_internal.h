/* spool_internal.h - what the files of the spool share. */
#pragma once

#include "spool.h"

#define RECORD_MAGIC 0x64636572u /* "recd" */

enum state { READY, FLYING, DONE };

struct item {
	uint64_t seq, n_events, at; /* at: of the frame, in the file */
	unsigned char *data;	    /* in a memory segment */
	uint32_t n_bytes, flags;
	enum state state;
};

struct segment {
	uint64_t serial;
	int fd; /* -1 = memory, or dropped */
	char *path;
	bool own, dropped;
	uint8_t agent_id[16];
	uint64_t n_file_bytes; /* or of memory */
	struct item *items;
	size_t n, n_alloc, first; /* items before first are done */
	size_t n_left;
};

struct spool {
	char *dir; /* NULL = memory only */
	uint64_t max_bytes, segment_bytes;
	struct spool_head head;
	struct segment **segments; /* oldest first */
	size_t n_segments, n_segments_alloc;
	uint64_t next_serial;
	unsigned n_puts_to_retry;
	struct spool_cursor *cursors;
	size_t n_cursors, n_cursors_alloc;
	struct spool_stats stats;
};

/* spool_segment.c: room for one more of v. */
bool spool_grow(void **v, size_t n, size_t *n_alloc, size_t size);

void spool_disk_error(struct spool *s, int err);
/* All of it, or a negative errno. */
int spool_write_all(int fd, const void *data, size_t n, uint64_t at);
int spool_read_all(int fd, void *data, size_t n, uint64_t at);

void spool_segment_free(struct segment *g);
struct segment *spool_segment_push(struct spool *s);
void spool_segment_remove(struct spool *s, struct segment *g);
/* A file of ours to append to; a memory segment when the disk refuses. */
struct segment *spool_segment_open(struct spool *s);
/* Nothing left in it: give the disk its room back. The newest segment of ours is
 * used again. */
void spool_segment_settle(struct spool *s, struct segment *g);

struct item *spool_item_of(const struct spool *s, uint64_t id, struct segment **ret);
/* A place for one more; it counts with the next call: its id. */
struct item *spool_item_push(struct segment *g, uint64_t seq, uint64_t n_events, uint32_t flags,
			     uint32_t n_bytes);
uint64_t spool_item_added(struct spool *s, struct segment *g);
void spool_item_gone(struct spool *s, struct segment *g, struct item *it, bool lost);
uint64_t spool_used_bytes(const struct spool *s, bool memory);
/* The oldest goes, whatever is in it. What is in flight may still arrive, so it
 * is only counted when its answer says no. */
bool spool_drop_oldest_file(struct spool *s);
/* In memory the oldest batch goes, not a whole segment. */
bool spool_drop_oldest_in_memory(struct spool *s);

/* spool_adopt.c: names sort by agent, then by segment: the order in which they
 * were written. */
int spool_adopt_all(struct spool *s);
