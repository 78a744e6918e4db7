#include "drain.h"

#include "guard.h"

#include <string.h>
#include <stdlib.h>

#define CHUNKS_A_TURN 4

struct heads {
	struct guest *g;
	uint64_t ring[SHM_MAX_RINGS], text;
	uint32_t n_strings;
};

/* Names last: an event's name was published before the event. */
static void read_heads(void *arg)
{
	struct heads *h = arg;
	const struct shm_header *lay = &h->g->lay;
	struct shm_header *file = (struct shm_header *)(void *)h->g->map;
	struct shm_ring *r = (struct shm_ring *)(void *)(h->g->map + lay->ring_headers_at);

	for (uint32_t i = 0; i < lay->n_rings; i++)
		h->ring[i] = atomic_load_explicit(&r[i].head, memory_order_acquire);
	h->text = atomic_load_explicit(&file->text.head, memory_order_acquire);
	h->n_strings = atomic_load_explicit(&file->strings.n_strings, memory_order_acquire);
}

struct copy {
	const unsigned char *from;
	unsigned char *to;
	size_t n, n_to_end; /* wraps to `wrap` after n_to_end bytes */
	const unsigned char *wrap;
};

static void copy(void *arg)
{
	struct copy *c = arg;
	size_t n = c->n < c->n_to_end ? c->n : c->n_to_end;

	memcpy(c->to, c->from, n);
	if (n < c->n)
		memcpy(c->to + n, c->wrap, c->n - n);
}

/* Bytes [at, at + n) of an area that wraps at size, a power of two. */
static bool copy_out(struct guest *g, uint64_t area_at, uint64_t size, uint64_t at, void *to,
		     size_t n)
{
	uint64_t from = at & (size - 1);
	struct copy c = {
		.from = g->map + area_at + from,
		.wrap = g->map + area_at,
		.to = to,
		.n = n,
		.n_to_end = (size_t)(size - from),
	};

	if (!guarded(copy, &c))
		g->cut = true;
	return !g->cut;
}

static enum drain_outcome drain_names(struct guest *g, uint32_t n_strings, struct batch *b)
{
	char buf[SHM_MAX_STRING + 1];

	if (n_strings > g->lay.max_strings)
		n_strings = g->lay.max_strings;
	while (g->n_names < n_strings) {
		uint32_t id = g->n_names + 1;
		size_t n = guest_string(g, id, buf);

		if (g->cut)
			return DRAIN_CUT;
		if (!batch_add_name(b, g->facts.proc, id, buf, n))
			return DRAIN_FULL;
		g->n_names = id;
		g->mentioned = g->barrier = true;
	}
	return DRAIN_DONE;
}

/* In place: host times, and no kind that the wire refuses. */
static void convert(struct guest *g, const struct tick *t, struct event *ev, size_t n)
{
	uint64_t bad = 0;

	if (!t->identity)
		for (size_t i = 0; i < n; i++)
			ev[i].tick = (uint64_t)tick_to_ns(t, ev[i].tick);
	for (size_t i = 0; i < n; i++) {
		if (ev[i].kind >= EVENT_N_KINDS) {
			ev[i].kind = EVENT_NONE;
			bad++;
		}
		flight_event(&g->flight, &ev[i]);
	}
	g->n_bad_kind += bad;
}

static void note_error(struct guest *g, const struct tick *t, uint64_t tick)
{
	int64_t err_ns = tick_error_ns(t, tick);

	if (err_ns > g->facts.tick_error_ns || !g->mentioned)
		g->facts.tick_error_ns = (uint32_t)err_ns;
}

static enum drain_outcome drain_ring(struct guest *g, uint32_t i, uint64_t head, bool all,
				     const struct tick *t, struct batch *b, double *ret_fill)
{
	static struct event ev[CHUNK_EVENTS]; /* one thread drains */
	struct guest_ring *r = &g->rings[i];
	uint64_t n_waiting = head - r->next;
	uint64_t slots_at = g->lay.ring_slots_at +
			    (uint64_t)i * g->lay.ring_slots * sizeof(struct event);

	if (n_waiting > g->lay.ring_slots || head > INT64_MAX) {
		/* No producer of ours gets here. Begin again at its head. */
		g->n_skipped += n_waiting < INT64_MAX ? n_waiting : 0;
		r->next = r->sealed = head;
		return DRAIN_DONE;
	}
	if (ret_fill && (double)(head - r->published) / g->lay.ring_slots > *ret_fill)
		*ret_fill = (double)(head - r->published) / g->lay.ring_slots;
	for (int k = 0; n_waiting > 0; k++) {
		size_t n = n_waiting < CHUNK_EVENTS ? (size_t)n_waiting : CHUNK_EVENTS;

		/* Half a small ring is as good as a whole chunk: the guest needs room. */
		if (n < CHUNK_EVENTS && !all && n_waiting < g->lay.ring_slots / 2)
			return DRAIN_DONE;
		if (k == CHUNKS_A_TURN)
			return DRAIN_MORE;
		if (batch_full(b) || b->n_chunks == BATCH_MAX_CHUNKS)
			return DRAIN_FULL;
		if (!copy_out(g, slots_at, (uint64_t)g->lay.ring_slots * sizeof *ev,
			      r->next * sizeof *ev, ev, n * sizeof *ev))
			return DRAIN_CUT;
		note_error(g, t, ev[0].tick);
		g->mentioned = true;
		note_error(g, t, ev[n - 1].tick);
		convert(g, t, ev, n);
		if (!batch_add_chunk(b, g->facts.proc, i, r->next, ev, n))
			return DRAIN_FULL; /* cannot be: room was asked for */
		r->next += n;
		n_waiting -= n;
	}
	return DRAIN_DONE;
}

static enum drain_outcome drain_text(struct guest *g, uint64_t head, const struct tick *t,
				     struct batch *b)
{
	static char buf[SHM_MAX_TEXT];
	uint64_t size = g->lay.text_bytes;

	if (head - g->text.next > size || head % 8 != 0) {
		g->text.next = g->text.sealed = head;
		return DRAIN_DONE;
	}
	while (head - g->text.next >= sizeof(struct shm_text)) {
		uint64_t to_end = size - (g->text.next & (size - 1));
		uint64_t n_left = head - g->text.next, n_padded;
		struct shm_text rec = { .kind = SHM_TEXT_PAD };
		struct frame_text ft;

		if (to_end >= sizeof rec &&
		    !copy_out(g, g->lay.text_at, size, g->text.next, &rec, sizeof rec))
			return DRAIN_CUT;
		if (rec.kind == SHM_TEXT_PAD) { /* or too near the end for a record */
			g->text.next += to_end < n_left ? to_end : n_left;
			continue;
		}
		n_padded = (sizeof rec + (uint64_t)rec.n_bytes + 7) & ~UINT64_C(7);
		if (rec.n_bytes > SHM_MAX_TEXT || n_padded > n_left || n_padded > to_end) {
			g->text.next = head; /* the chain is broken, its rest is lost */
			g->n_skipped++;
			break;
		}
		if (!copy_out(g, g->lay.text_at, size, g->text.next + sizeof rec, buf, rec.n_bytes))
			return DRAIN_CUT;
		ft = (struct frame_text){
			.proc = g->facts.proc,
			.kind = rec.kind,
			.level = rec.level,
			.at_ns = tick_to_ns(t, rec.tick),
			.text = buf,
			.n_text = rec.n_bytes,
		};
		if (!batch_add_text(b, &ft))
			return DRAIN_FULL;
		g->mentioned = true;
		g->text.next += n_padded;
	}
	return DRAIN_DONE;
}

enum drain_outcome drain(struct guest *g, bool all, const struct tick *t, struct batch *b,
			 double *ret_fill)
{
	struct heads h = { .g = g };
	enum drain_outcome r;
	bool more = false;

	if (g->cut)
		return DRAIN_CUT;
	if (!guarded(read_heads, &h)) {
		g->cut = true;
		return DRAIN_CUT;
	}
	r = drain_names(g, h.n_strings, b);
	if (r != DRAIN_DONE)
		return r;
	for (uint32_t k = 0; k < g->lay.n_rings; k++) {
		uint32_t i = (g->first_ring + k) % g->lay.n_rings;

		r = drain_ring(g, i, h.ring[i], all, t, b, ret_fill);
		if (r == DRAIN_FULL) {
			g->first_ring = i;
			return r;
		}
		if (r == DRAIN_CUT)
			return r;
		more |= r == DRAIN_MORE;
	}
	r = drain_text(g, h.text, t, b);
	if (r != DRAIN_DONE)
		return r;
	return more ? DRAIN_MORE : DRAIN_DONE;
}

void drain_sealed(struct guest *g)
{
	for (uint32_t i = 0; i < g->lay.n_rings; i++)
		g->rings[i].sealed = g->rings[i].next;
	g->text.sealed = g->text.next;
}

uint32_t drain_cursors(const struct guest *g, struct spool_cursor *out, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->lay.n_rings && n < max; i++)
		if (g->rings[i].next != g->rings[i].sealed)
			out[n++] = (struct spool_cursor){ .unique = g->lay.unique,
							  .ring = i,
							  .next = g->rings[i].next };
	if (g->text.next != g->text.sealed && n < max)
		out[n++] = (struct spool_cursor){ .unique = g->lay.unique,
						  .ring = SPOOL_TEXT,
						  .next = g->text.next };
	return n;
}
