#include "ship.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLD_NS INT64_C(1000000000) /* after a "not now" */

int64_t ship_seal(struct ship *s, const struct batch *b, bool barrier,
		  const struct spool_cursor *cursors, uint32_t n_cursors)
{
	struct frame f = batch_frame(b);
	struct spool_stats st;

	spool_stats(s->spool, &st);
	f.batch.stream = s->stream;
	f.batch.seq = s->seq + 1;
	f.batch.n_given_up = st.n_given_up;
	memcpy(f.batch.agent_id, s->agent_id, sizeof s->agent_id);
	if (frame_pack(&s->packed, &f) != 0) {
		s->packed_id = 0;
		return -ENOMEM;
	}
	s->seq++;
	s->packed_stream = s->stream;
	s->packed_id = spool_put(s->spool, s->seq, b->n_events, barrier ? SPOOL_BARRIER : 0,
				 cursors, n_cursors, s->packed.data, (uint32_t)s->packed.n_bytes);
	return (int64_t)s->seq;
}

/* The stream that this batch goes under; 0 = none yet, a hello is due. */
static uint64_t stream_for(struct ship *s, const struct spool_item *it)
{
	if (memcmp(it->agent_id, s->agent_id, sizeof s->agent_id) == 0) {
		/* What earlier agents left is over first: rings go on where it ends. */
		return s->heir.stream != 0 && s->n_flying > 0 ? 0 : s->stream;
	}
	if (memcmp(it->agent_id, s->heir.agent_id, sizeof s->heir.agent_id) != 0) {
		if (s->n_flying > 0)
			return 0;
		memcpy(s->heir.agent_id, it->agent_id, sizeof s->heir.agent_id);
		s->heir.stream = 0;
	}
	s->heir.hello_due |= s->heir.stream == 0;
	return s->heir.stream;
}

/* The frame of a kept batch under its stream. NULL: it could not be read back
 * and is given up. */
static const struct frame_buf *frame_of(struct ship *s, const struct spool_item *it,
					uint64_t stream)
{
	struct frame f;
	int r;

	if (it->id == s->packed_id && s->packed_stream == stream)
		return &s->packed;
	if (it->n_bytes > s->n_read_buf) {
		unsigned char *p = realloc(s->read_buf, it->n_bytes);

		if (!p)
			return NULL;
		s->read_buf = p;
		s->n_read_buf = it->n_bytes;
	}
	if (spool_read(s->spool, it->id, s->read_buf) != 0)
		return NULL;
	r = frame_open(&f, s->read_buf, it->n_bytes);
	if (r == -ENOMEM)
		return NULL;
	if (r != FRAME_OK || f.type != FRAME_BATCH) {
		if (r == FRAME_OK)
			frame_close(&f);
		spool_give_up(s->spool, it->id);
		return NULL;
	}
	f.batch.stream = stream;
	r = frame_pack(&s->restamped, &f);
	frame_close(&f);
	return r == 0 ? &s->restamped : NULL;
}

void ship_pump(struct ship *s, int64_t now_ns)
{
	while (s->stream != 0 && !s->fatal && now_ns >= s->hold_until_ns && s->n_barriers == 0 &&
	       s->n_flying < s->window && s->n_flying < LINK_MAX_WINDOW && s->n_flying < (s->credit > 0 ? s->credit : 1) &&
	       link_connected(s->link, LINK_DATA)) {
		struct spool_item it = spool_next(s->spool);
		const struct frame_buf *buf;
		uint64_t stream;

		if (it.id == 0)
			return;
		stream = stream_for(s, &it);
		if (stream == 0)
			return;
		if (stream == s->stream)
			s->heir.stream = 0;
		buf = frame_of(s, &it, stream);
		if (!buf)
			return; /* the next turn looks again */
		if (link_ask(s->link, LINK_DATA, it.id, buf->data, buf->n_bytes) != 0)
			return;
		spool_take(s->spool, it.id);
		s->flying[s->n_flying].id = it.id;
		s->flying[s->n_flying].stream = stream;
		s->flying[s->n_flying].seq =
			memcmp(it.agent_id, s->agent_id, sizeof s->agent_id) == 0 ? it.seq : 0;
		s->flying[s->n_flying].barrier = it.flags & SPOOL_BARRIER;
		s->n_barriers += s->flying[s->n_flying].barrier;
		s->n_flying++;
		s->n_sent++;
	}
}

/* What the spool gave up may still be in flight. */
uint64_t ship_oldest(const struct ship *s)
{
	uint64_t oldest = spool_oldest(s->spool, s->seq);

	for (unsigned i = 0; i < s->n_flying; i++)
		if (s->flying[i].seq != 0 && s->flying[i].seq < oldest)
			oldest = s->flying[i].seq;
	return oldest;
}

void ship_refused(struct ship *s, const struct frame_refuse *r)
{
	s->fatal = r->code;
	snprintf(s->why, sizeof s->why, "%s", r->text);
}

static void refused(struct ship *s, const struct spool_item *it, const struct frame_refuse *r,
		    int64_t now_ns)
{
	switch (r->code) {
	case REFUSE_BUSY:
		say_limited(&s->busy_limit, now_ns,
			    "the collector cannot take batches now: %s; they are kept here",
			    r->text);
		spool_put_back(s->spool, it->id);
		s->hold_until_ns = now_ns + HOLD_NS;
		break;
	case REFUSE_MALFORMED:
		say_limited(&s->bad_limit, now_ns,
			    "the collector refused batch %llu with %llu events: %s; they are given "
			    "up and counted",
			    (unsigned long long)it->seq, (unsigned long long)it->n_events, r->text);
		spool_give_up(s->spool, it->id);
		s->n_refused++;
		break;
	default:
		spool_put_back(s->spool, it->id);
		ship_refused(s, r);
	}
}

static void not_understood(struct ship *s, const struct spool_item *it, int64_t now_ns,
			   const char *why)
{
	say_limited(&s->bad_limit, now_ns,
		    "the answer to batch %llu is not one: %s; it is sent again",
		    (unsigned long long)it->seq, why);
	spool_put_back(s->spool, it->id);
	s->hold_until_ns = now_ns + HOLD_NS;
}

/* It is in flight no more. Returns the stream it was sent under. */
static uint64_t landed(struct ship *s, uint64_t id)
{
	for (unsigned i = 0; i < s->n_flying; i++) {
		uint64_t stream = s->flying[i].stream;

		if (s->flying[i].id != id)
			continue;
		s->n_barriers -= s->flying[i].barrier;
		s->flying[i] = s->flying[--s->n_flying];
		return stream;
	}
	return 0;
}

void ship_answer(struct ship *s, const struct link_answer *a)
{
	struct spool_item it = spool_item(s->spool, a->tag);
	uint64_t stream = landed(s, a->tag);
	struct frame f;
	int r;

	if (a->result != 0) { /* never left, or the transport gave it back */
		spool_put_back(s->spool, a->tag);
		return;
	}
	r = frame_open(&f, a->data, a->n_bytes);
	if (r != FRAME_OK) {
		not_understood(s, &it, a->at_ns, frame_outcome_text(r));
		return;
	}
	if (f.type == FRAME_ACK && f.ack.seq == it.seq) {
		s->credit = f.ack.credit;
		s->last_ack_ns = a->at_ns;
		s->n_acked++;
		spool_done(s->spool, a->tag);
	} else if (f.type == FRAME_ACK) {
		not_understood(s, &it, a->at_ns, "it acknowledges another batch");
	} else if (f.type == FRAME_REHELLO) {
		spool_put_back(s->spool, a->tag);
		/* Answers to what was sent before the last hello come late. */
		if (stream == s->stream) {
			s->stream = 0;
			s->hello_due = true;
		} else if (stream == s->heir.stream) {
			s->heir.stream = 0;
			s->heir.hello_due = true;
		}
	} else if (f.type == FRAME_REFUSE) {
		refused(s, &it, &f.refuse, a->at_ns);
	} else {
		not_understood(s, &it, a->at_ns, "it is of another type");
	}
	frame_close(&f);
}

void ship_fini(struct ship *s)
{
	frame_buf_fini(&s->packed);
	frame_buf_fini(&s->restamped);
	free(s->read_buf);
	s->read_buf = NULL;
}
