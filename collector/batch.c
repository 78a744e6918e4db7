/* batch.c - one batch: checked as a whole before any of it counts, then taken.
 *
 * A ring's events go by index: repeats are trimmed, holes are counted as lost and
 * may be filled later.
 */
#include "ingest_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- can it be ----------------------------------------------------------- */

/* The process that a batch means by `proc`: known, or introduced by itself. */
static bool knows_proc(struct ingest *g, const struct agent *a, const struct frame_batch *b,
		       uint32_t proc)
{
	if (agent_process(&g->peers, a, proc))
		return true;
	for (uint32_t i = 0; i < b->n_procs; i++)
		if (b->procs[i].proc == proc)
			return true;
	return false;
}

enum frame_refusal ingest_check_batch(struct ingest *g, const struct agent *a,
				      const struct frame_batch *b, int64_t now_raw_ns, char *why,
				      size_t n_why)
{
	enum frame_refusal code;

	if (memcmp(a->agent_id, b->agent_id, sizeof a->agent_id) != 0 || b->seq == 0) {
		snprintf(why, n_why, "The batch does not belong to the agent of its stream.");
		return REFUSE_MALFORMED;
	}
	code = ingest_check_procs(g, a, a->host, b->procs, b->n_procs, now_raw_ns, why, n_why);
	if (code != 0)
		return code;
	for (uint32_t i = 0; i < b->n_names; i++)
		if (b->names[i].id == 0 || b->names[i].id >= PROCESS_MAX_NAMES ||
		    b->names[i].n_text > SHM_MAX_STRING || !knows_proc(g, a, b, b->names[i].proc)) {
			snprintf(why, n_why, "Name %u of process %u cannot be.", b->names[i].id,
				 b->names[i].proc);
			return REFUSE_MALFORMED;
		}
	for (uint32_t i = 0; i < b->n_texts; i++)
		if (b->texts[i].n_text > SHM_MAX_TEXT || !ingest_sane_raw(b->texts[i].at_ns) ||
		    !knows_proc(g, a, b, b->texts[i].proc)) {
			snprintf(why, n_why, "A text of process %u is too long, of nobody or at no time.",
				 b->texts[i].proc);
			return REFUSE_MALFORMED;
		}
	for (uint32_t i = 0; i < b->n_gauges; i++)
		if ((b->gauges[i].proc != FRAME_HOST_PROC &&
		     !knows_proc(g, a, b, b->gauges[i].proc)) ||
		    strlen(b->gauges[i].name) > FRAME_MAX_ID ||
		    !ingest_sane_raw(b->gauges[i].at_ns)) {
			snprintf(why, n_why, "A gauge is of nobody, at no time or its name is too long.");
			return REFUSE_MALFORMED;
		}
	for (uint32_t i = 0; i < b->n_chunks; i++) {
		const struct frame_chunk *c = &b->chunks[i];
		struct chunk_info info;
		enum chunk_outcome r = chunk_peek(c->data, c->n_bytes, &info);
		size_t n;

		if (r == CHUNK_OK && chunk_has_domain(&info))
			r = chunk_decode(c->data, c->n_bytes, g->decoded, CHUNK_MAX_EVENTS, &n);
		if (r != CHUNK_OK || info.n_events == 0 || c->ring >= SHM_MAX_RINGS ||
		    c->first > UINT64_MAX / 2 || info.n_bytes != c->n_bytes ||
		    !ingest_sane_raw(info.t_min_ns) || !ingest_sane_raw(info.t_max_ns) ||
		    !knows_proc(g, a, b, c->proc)) {
			snprintf(why, n_why, "Chunk %u of %u (process %u, ring %u) is damaged: %s.", i,
				 b->n_chunks, c->proc, c->ring,
				 r != CHUNK_OK ? chunk_outcome_text(r) : "its place, time or size cannot be");
			return REFUSE_MALFORMED;
		}
	}
	return 0;
}

/* --- taking -------------------------------------------------------------- */

static void note_newest(struct ingest *g, const struct process *p, int64_t t_ns)
{
	struct fleet_point at;

	ingest_place(g, p->row.host, t_ns, &at);
	if (at.at.ns > g->last_event_ns)
		g->last_event_ns = at.at.ns;
}

static void put_ring(struct ingest *g, struct process *p, uint32_t index, struct ring *ring,
		     const struct range *range, bool merged)
{
	struct row_ring *row;

	if (ring->job_serial == g->job->serial && ring->job_row < g->job->rings.n) {
		row = &g->job->rings.v[ring->job_row];
		if (row->process == p->row.process && row->ring == index && row->lo == range->lo) {
			row->hi = range->hi;
			row->merged |= merged;
			return;
		}
	}
	row = JOB_PUSH(g->job, rings);
	if (!row) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_ring){ .process = p->row.process, .ring = index, .lo = range->lo,
				  .hi = range->hi, .merged = merged };
	ring->job_serial = g->job->serial;
	ring->job_row = g->job->rings.n - 1;
}

/* One run of events that is not stored yet: [lo, hi) of the chunk's indices. */
static void take_events(struct ingest *g, struct process *p, uint32_t index, struct ring *ring,
			const struct frame_chunk *c, const struct chunk_info *whole,
			const struct range *part)
{
	uint64_t end = ranges_end(&ring->stored), n_hole = 0;
	const struct event *events = g->decoded;
	const unsigned char *data = c->data;
	struct chunk_info info = *whole;
	struct row_chunk *row;
	struct range holder;
	bool merged, late = part->lo < end, cut = part->hi - part->lo < whole->n_events;
	size_t n = 0;

	if (chunk_has_domain(whole) || cut) {
		if (chunk_decode(c->data, c->n_bytes, g->decoded, CHUNK_MAX_EVENTS, &n) != CHUNK_OK) {
			/* Never checked, because no kind is ours: nothing of it can be cut out. */
			cut = false;
			late = true;
		}
	}
	if (cut) {
		unsigned char *piece;

		events += part->lo - c->first;
		n = (size_t)(part->hi - part->lo);
		piece = (unsigned char *)job_bytes(g->job, CHUNK_MAX_BYTES(n));
		if (!piece) {
			ingest_fail(g, -ENOMEM);
			return;
		}
		info.n_bytes = chunk_encode(events, n, piece);
		(void)chunk_peek(piece, info.n_bytes, &info); /* our own bytes */
		data = piece;
	}
	if (!late)
		n_hole = part->lo - end;
	if (ranges_add(&ring->stored, part->lo, part->hi, &holder, &merged) != 0) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	row = JOB_PUSH(g->job, chunks);
	if (!row) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_chunk){
		.chunk = g->next_chunk++, .process = p->row.process, .ring = index,
		.first = part->lo, .kinds = info.kinds, .n_events = info.n_events,
		.t_min_ns = info.t_min_ns, .t_max_ns = info.t_max_ns, .data = data,
		.n_bytes = info.n_bytes,
	};
	put_ring(g, p, index, ring, &holder, merged);
	g->n_events += info.n_events;
	if (n_hole) {
		p->row.n_gap += n_hole;
		g->n_gap += n_hole;
		ingest_put_process(g, p);
		if (core_lost(g->core, p->row.process, (host_time){ info.t_min_ns }, n_hole) != 0)
			ingest_fail(g, -ENOMEM);
	} else if (late) {
		/* It came after all. Stored; the analysis has gone on without it. */
		if (n > 0)
			core_late(g->core, events, n);
		uint64_t n_back = part->hi - part->lo;

		n_back = n_back < p->row.n_gap ? n_back : p->row.n_gap;
		p->row.n_gap -= n_back;
		g->n_gap -= n_back;
		ingest_put_process(g, p);
	}
	if (!late && chunk_has_domain(&info) &&
	    core_events(g->core, p->row.process, index, row->chunk, events, n) != 0)
		ingest_fail(g, -ENOMEM);
	note_newest(g, p, info.t_max_ns);
}

static void take_chunk(struct ingest *g, struct process *p, const struct frame_chunk *c)
{
	struct ring *ring = process_ring(p, c->ring);
	struct chunk_info info;
	struct range part;

	if (!ring) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	(void)chunk_peek(c->data, c->n_bytes, &info); /* ingest_check_batch() has */
	while (g->fatal == 0 &&
	       ranges_missing(&ring->stored, c->first, c->first + info.n_events, &part))
		take_events(g, p, c->ring, ring, c, &info, &part);
}

static void take_gauge(struct ingest *g, const struct agent *a, const struct frame_gauge *v)
{
	const struct process *p = v->proc == FRAME_HOST_PROC ? NULL :
							       agent_process(&g->peers, a, v->proc);
	struct row_gauge *row = JOB_PUSH(g->job, gauges);
	struct fleet_point at;

	ingest_place(g, a->host, v->at_ns, &at);
	if (!row) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_gauge){ .at_ns = at.at.ns, .host = a->host, .rank = p ? p->row.rank : -1,
				   .name = job_utf8(g->job, v->name, strlen(v->name)),
				   .value = v->value };
	if (core_gauge(g->core, p ? p->row.process : UINT32_MAX, a->host, (host_time){ v->at_ns },
		       v->name, v->value) != 0)
		ingest_fail(g, -ENOMEM);
}

static void take_name(struct ingest *g, struct process *p, const struct frame_name *v)
{
	struct row_name *row;
	const char *text;
	int is_new = process_note_name(p, v->id);

	if (is_new == 0)
		return;
	row = is_new > 0 ? JOB_PUSH(g->job, names) : NULL;
	text = row ? job_utf8(g->job, v->text, v->n_text) : NULL;
	if (!text || core_name(g->core, p->row.process, v->id, text, strlen(text)) != 0) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_name){ .process = p->row.process, .id = v->id, .text = text };
}

void ingest_take_batch(struct ingest *g, struct agent *a, const struct frame_batch *b,
		       int64_t now_raw_ns)
{
	struct row_batch *row;
	struct range holder;
	bool merged;

	for (uint32_t i = 0; i < b->n_procs; i++)
		ingest_learn_process(g, a, &b->procs[i], now_raw_ns);
	for (uint32_t i = 0; i < b->n_names; i++)
		take_name(g, agent_process(&g->peers, a, b->names[i].proc), &b->names[i]);
	/* Who is in a group, before its calls: of groups of one name it tells which is meant. */
	for (uint32_t i = 0; i < b->n_texts; i++)
		if (ingest_group(g, &b->texts[i]) != 0)
			ingest_fail(g, -ENOMEM);
	for (uint32_t i = 0; i < b->n_chunks && g->fatal == 0; i++)
		take_chunk(g, agent_process(&g->peers, a, b->chunks[i].proc), &b->chunks[i]);
	for (uint32_t i = 0; i < b->n_texts; i++)
		if (ingest_text(g, agent_process(&g->peers, a, b->texts[i].proc), &b->texts[i]) != 0)
			ingest_fail(g, -ENOMEM);
	for (uint32_t i = 0; i < b->n_gauges; i++)
		take_gauge(g, a, &b->gauges[i]);
	for (uint32_t i = 0; i < b->n_snapshots; i++)
		ingest_snapshot(g, a, &b->snapshots[i]);
	for (uint32_t i = 0; i < b->n_peer_exchanges; i++)
		ingest_peer_exchange(g, a, &b->peer_exchanges[i]);
	if (b->n_given_up > a->n_given_up)
		a->n_given_up = b->n_given_up;
	row = JOB_PUSH(g->job, batches);
	if (!row || ranges_add(&a->seqs, b->seq, b->seq + 1, &holder, &merged) != 0) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_batch){ a->id, b->seq };
	if (b->seq >= a->next_seq)
		a->next_seq = b->seq + 1;
}
