/* ship.h - batches on their way: sealed, kept, sent, acknowledged.
 *
 * A batch is in the spool before it is sent and leaves it when the collector
 * has said that it is durable, or when it can never be (counted). Oldest first,
 * a few at a time; what names something new arrives before what uses it.
 */
#pragma once

#include "batch.h"
#include "link.h"
#include "say.h"
#include "spool.h"

struct ship {
	struct spool *spool;
	struct link *link;
	uint8_t agent_id[16];
	uint64_t seq;	 /* of the last batch sealed */
	uint64_t stream; /* 0 = hello first */
	bool hello_due;
	/* An earlier agent, while its batches go first: a stream speaks for one
	 * agent, so it gets a hello and a stream of its own. */
	struct {
		uint8_t agent_id[16];
		uint64_t stream;
		bool hello_due;
	} heir;
	struct {
		uint64_t id, stream, seq; /* seq 0 = of an earlier agent */
		bool barrier;
	} flying[LINK_MAX_WINDOW];
	unsigned window, n_flying, n_barriers;
	uint32_t credit;
	int64_t hold_until_ns, last_ack_ns;
	uint64_t n_acked, n_sent, n_refused;
	uint32_t fatal;	 /* enum frame_refusal that no retry helps against */
	char why[512];	 /* the collector's sentence for it */

	struct frame_buf packed; /* the batch sealed last, under packed_stream */
	uint64_t packed_id, packed_stream;
	struct frame_buf restamped;
	unsigned char *read_buf;
	size_t n_read_buf;
	struct say_limit busy_limit, bad_limit;
};

/* Give the batch its number and put it where it survives us. Returns the
 * number, or -ENOMEM: then it is still in b. */
int64_t ship_seal(struct ship *s, const struct batch *b, bool barrier,
		  const struct spool_cursor *cursors, uint32_t n_cursors);
/* Send what may be sent now. */
void ship_pump(struct ship *s, int64_t now_ns);
/* The first of our own batches that may still reach the collector; the next new
 * one when there is none. */
uint64_t ship_oldest(const struct ship *s);
/* An answer on the data channel. */
void ship_answer(struct ship *s, const struct link_answer *a);
/* A refusal, from either channel, that ends the agent. */
void ship_refused(struct ship *s, const struct frame_refuse *r);
void ship_fini(struct ship *s);
