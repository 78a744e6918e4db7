/* feed.h - the ring of what changed, behind server-sent events and polling.
 *
 * One ring for all clients: a client is only a cursor into it, so a slow one
 * costs nothing and falls out at the far end. Events of a kind are folded to at
 * most one a gap; the last one wins and says how many it stands for. Time is a
 * parameter.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEED_EVENTS 4096
#define FEED_MAX_DATA 1000

enum feed_kind { FEED_STEP, FEED_FINDING, FEED_RANK, FEED_DROP, FEED_CLOCK, FEED_N_KINDS };

struct feed_event {
	uint64_t id;
	enum feed_kind kind;
	char *data; /* one JSON object in one line; owned */
};

struct feed;

/* The id of the first event will be first_id + 1; ids of one feed have no gaps.
 * Take first_id from a clock so that a restarted collector's ids are larger than
 * those that its clients remember. */
int feed_new(struct feed **ret, uint64_t first_id, int64_t gap_ns);
void feed_free(struct feed *f); /* NULL is fine */

/* data: an object as text, copied. True when an event came out at once; else it
 * is kept for feed_flush. What does not fit in FEED_MAX_DATA is posted as {}. */
bool feed_post(struct feed *f, enum feed_kind kind, const char *data, int64_t now_ns);
/* Let out what has waited long enough; true when something came out. */
bool feed_flush(struct feed *f, int64_t now_ns);
/* When flush has something to do next; INT64_MAX when nothing waits. */
int64_t feed_due_ns(const struct feed *f);

uint64_t feed_head(const struct feed *f); /* id of the newest, first_id when none */
/* Can a client that has seen up to cursor be told everything since? */
bool feed_covers(const struct feed *f, uint64_t cursor);
/* NULL when it is gone or not there yet. Valid until the next post or flush. */
const struct feed_event *feed_get(const struct feed *f, uint64_t id);

const char *feed_kind_name(enum feed_kind kind);
