/* spool.h - batches from when they are sealed until the collector has them.
 *
 * A batch is appended to a file before anything else happens to it, so the
 * rings can be freed at once and a killed agent loses nothing: the next one
 * adopts the file, ships what is in it under the old agent's id and number, and
 * begins each ring where the old one ended. While the collector answers, the
 * file is emptied faster than the kernel writes it out.
 *
 * Bounded: beyond max_bytes the oldest segment goes and its events are counted.
 * Where the disk refuses, batches wait in a smaller bounded memory instead.
 *
 *   segment file: struct spool_head, then records: struct spool_record, cursors,
 *   the packed frame; each record with its length and checksum. A torn tail ends
 *   a segment. flock() says whether its agent lives.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOOL_MAGIC UINT64_C(0x316c6f6f70736e79) /* "ynspool1", little endian */
#define SPOOL_VERSION 1
#define SPOOL_SUFFIX ".spool"
#define SPOOL_DEFAULT_BYTES (UINT64_C(256) << 20)
#define SPOOL_MIN_BYTES (UINT64_C(1) << 20)
#define SPOOL_MEMORY_BYTES (UINT64_C(6) << 20)

struct spool_head {
	uint64_t magic;
	uint32_t version, head_bytes;
	uint8_t agent_id[16];
	char run_id[72], boot_id[48], host[72];
	uint64_t time_ns_inode;
};

/* How far a ring (or SPOOL_TEXT, the text ring) of a process is in here. */
struct spool_cursor {
	uint64_t unique;
	uint32_t ring;
	uint32_t reserved;
	uint64_t next;
};
#define SPOOL_TEXT UINT32_MAX

struct spool_record {
	uint32_t magic;
	uint32_t n_bytes; /* of the frame */
	uint64_t seq;
	uint64_t n_events;
	uint32_t n_cursors;
	uint32_t flags;
	uint32_t crc; /* of the record with crc = 0, the cursors and the frame */
	uint32_t reserved;
};
#define SPOOL_BARRIER 1u /* what comes later needs this one first: names, new processes */

struct spool_config {
	const char *dir; /* NULL = memory only */
	uint64_t max_bytes;
	const struct spool_head *who; /* run, host, boot, agent: spool_open() fills in the rest */
};

/* One batch as a shipper sees it. */
struct spool_item {
	uint64_t id; /* 0 = none */
	uint64_t seq, n_events;
	uint32_t n_bytes, flags;
	uint8_t agent_id[16];
};

struct spool_stats {
	uint64_t n_kept, kept_bytes, file_bytes; /* not yet acknowledged */
	uint64_t n_given_up;			 /* events that went without an acknowledgement */
	uint64_t n_batches_given_up;
	uint64_t n_adopted; /* batches of earlier agents, at open */
	uint64_t n_torn;    /* segments whose tail could not be read */
	uint64_t n_foreign; /* segments left alone: another boot or host */
	uint64_t n_disk_errors;
	int last_errno;
};

struct spool;

/* Adopts what earlier agents of this run, host and boot left. 0 or -ENOMEM: a
 * directory that cannot be used is counted, and memory is used. */
int spool_open(struct spool **ret, const struct spool_config *cfg);
/* Removes the files in which nothing is left; NULL is fine. */
void spool_close(struct spool *s);

/* Keep one batch. Returns its id; 0 when not even memory had room (counted). */
uint64_t spool_put(struct spool *s, uint64_t seq, uint64_t n_events, uint32_t flags,
		   const struct spool_cursor *cursors, uint32_t n_cursors, const void *frame,
		   uint32_t n_bytes);

/* The oldest batch that is not taken; id 0 = none. */
struct spool_item spool_next(struct spool *s);
/* Its frame, n_bytes of the item into out. 0 or -EIO when the file no longer
 * holds it (then it is given up and counted). */
int spool_read(struct spool *s, uint64_t id, void *out);
void spool_take(struct spool *s, uint64_t id);	  /* in flight */
void spool_put_back(struct spool *s, uint64_t id); /* not any more */
void spool_done(struct spool *s, uint64_t id);	  /* acknowledged */
void spool_give_up(struct spool *s, uint64_t id);
/* The item of an id that is taken; id 0 when it is none. */
struct spool_item spool_item(struct spool *s, uint64_t id);

/* The first own batch, up to seq, that is neither acknowledged nor given up;
 * seq + 1 = none. */
uint64_t spool_oldest(const struct spool *s, uint64_t seq);
/* Where the old agent ended; false = not in here. */
bool spool_cursor(const struct spool *s, uint64_t unique, uint32_t ring, uint64_t *ret_next);
void spool_stats(const struct spool *s, struct spool_stats *ret);
/* A file that would be left, for a person; "" when all is in memory. */
const char *spool_path(const struct spool *s);
