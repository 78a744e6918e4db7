/* memory_rows.c - the tables of memory snapshots, and the newest refusal of each rank as a record for the rules. */
#include "memory_snapshot.h"
#include "row_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_EVENTS 5000 /* and every refusal */
#define MAX_SEGMENTS 10000
#define MAX_SITES 500

enum { RANK, DEVICE, SEQ, AT, ASKED, DEVICE_FREE, ALLOCATED, ALLOCATED_ERR, RESERVED,
       CAUSE = 14 }; /* columns of memory_oom */

_Static_assert(MEMORY_UNKNOWN == TRACE_NULL, "unknown is NULL");

static bool put_segment(struct trace *t, const struct memory_device *d, const struct memory_segment *s, int64_t rank)
{
	int64_t allocated = 0, active = 0, largest = 0;

	for (uint32_t i = s->first_block; i < s->first_block + s->n_blocks; i++) {
		const struct memory_block *b = &d->blocks[i];

		active += b->state != MEMORY_FREE ? b->size : 0;
		allocated += b->state == MEMORY_LIVE ? b->size : 0;
		largest = b->state == MEMORY_FREE && b->size > largest ? b->size : largest;
	}
	return trace_row(t, "memory_segment", "iiiiiiitiii", rank, d->device, s->address, s->size, allocated, active,
			 s->stream, s->kind, (int64_t)s->n_blocks, largest, s->expandable < 0 ? TRACE_NULL : (int64_t)s->expandable);
}

static bool put_event(struct trace *t, const struct memory_device *d, const struct memory_event *e, int64_t rank)
{
	static const char *const names[] = { "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
					     "segment_map", "segment_unmap", "oom" };

	return trace_row(t, "memory_event", "iiiitiiit", rank, d->device, (int64_t)e->seq, e->at_ns, names[e->action],
			 e->action == MEMORY_OOM ? TRACE_NULL : e->address, e->size, e->stream, d->sites[e->site].name);
}

static bool put_oom(struct trace *t, const struct memory_device *d, const struct memory_oom *o, int64_t rank)
{
	const struct memory_event *e = &d->events[o->event];
	int capped = memory_capped(d, o);
	char sentence[1400];
	const char *cause = memory_cause(d, o, rank, sentence, sizeof sentence);

	return trace_row(t, "memory_oom", "iiiiiiiiiiitiitt", rank, d->device, (int64_t)e->seq, e->at_ns, e->size,
			 e->device_free, o->allocated, o->allocated_err, o->reserved, o->largest_free,
			 capped < 0 ? TRACE_NULL : (int64_t)capped, d->sites[o->site].name, o->site ? o->n_held : TRACE_NULL,
			 o->site ? o->held : TRACE_NULL, cause, sentence);
}

static int by_bytes(const void *a, const void *b)
{
	const struct memory_site *x = a, *y = b;

	if (x->live != y->live)
		return x->live < y->live ? 1 : -1;
	if (x->allocated != y->allocated)
		return x->allocated < y->allocated ? 1 : -1;
	return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

/* They are put in another order: what has their numbers is written already. */
static bool put_sites(struct trace *t, struct memory_device *d, int64_t rank, uint32_t *n_left_out)
{
	uint32_t n = 0;

	qsort(d->sites, d->n_sites, sizeof *d->sites, by_bytes);
	for (uint32_t i = 0; i < d->n_sites; i++) {
		const struct memory_site *s = &d->sites[i];

		if (s->n_live + s->n_allocated == 0)
			continue;
		if (n++ >= MAX_SITES)
			++*n_left_out;
		else if (!trace_row(t, "memory_site", "iitiiiiii", rank, d->device, s->name, s->n_live, s->live, s->n_allocated,
				    s->allocated, s->n_freed, s->freed))
			return false;
	}
	return true;
}

bool memory_put_rows(struct trace *t, struct memory_device *d, int64_t rank, const char *rank_from, uint32_t *n_left_out)
{
	uint32_t n_events_out = 0, n_segments = d->n_segments < MAX_SEGMENTS ? d->n_segments : MAX_SEGMENTS;

	for (uint32_t i = 0; i < d->n_ooms; i++)
		if (!put_oom(t, d, &d->ooms[i], rank))
			return false;
	for (uint32_t i = 0; i < d->n_events; i++)
		if (d->n_events - i > MAX_EVENTS && d->events[i].action != MEMORY_OOM)
			n_events_out++;
		else if (!put_event(t, d, &d->events[i], rank))
			return false;
	for (uint32_t i = 0; i < n_segments; i++)
		if (!put_segment(t, d, &d->segments[i], rank))
			return false;
	*n_left_out += n_events_out + (d->n_segments - n_segments);
	return trace_row(t, "memory_snapshot", "iitiiiiiiii", rank, d->device, rank_from, d->reserved, d->allocated, d->active,
			 (int64_t)d->n_segments, (int64_t)d->n_blocks, (int64_t)d->n_events, (int64_t)n_events_out,
			 d->n_events > 0 ? d->events[0].at_ns : TRACE_NULL) &&
	       put_sites(t, d, rank, n_left_out);
}

bool memory_has_rank(const struct trace *t, int64_t rank)
{
	for (uint32_t i = t->n_rows; i-- > 0;)
		if (strcmp(t->rows[i].table, "memory_snapshot") == 0 && row_integer(&t->rows[i], RANK) == rank)
			return true;
	return false;
}

/* ---- for the rules ---- */

static bool note_oom(struct trace *t, const struct trace_row *v)
{
	struct trace_rank *r = trace_find_rank(t, (int32_t)row_integer(v, RANK));
	int64_t reserved = row_integer(v, RESERVED), allocated = row_integer(v, ALLOCATED), at_ns = row_integer(v, AT);
	/* Enough is free, and yet it is not that: a rule that has only these numbers would err. */
	bool apart = strcmp(v->values[CAUSE].text, "fragmentation") != 0 && reserved != TRACE_NULL && allocated != TRACE_NULL &&
		     reserved - allocated >= row_integer(v, ASKED);
	char text[200];
	if (reserved != TRACE_NULL && allocated != TRACE_NULL && !apart) /* the most it can have been: no gap is made larger */
		snprintf(text, sizeof text, "{\"bytes\":%lld,\"reserved_gb\":%.9g,\"allocated_gb\":%.9g}",
			 (long long)row_integer(v, ASKED), (double)reserved * 1e-9,
			 (double)(allocated + row_integer(v, ALLOCATED_ERR)) * 1e-9);
	else
		snprintf(text, sizeof text, "{\"bytes\":%lld}", (long long)row_integer(v, ASKED));
	return trace_note(t, r, at_ns == TRACE_NULL ? 0 : at_ns, "mem.alloc_failed", text);
}

static bool add_ranks(struct trace *t)
{
	bool alone = t->n_ranks == 0;

	for (uint32_t i = 0; i < t->n_rows && alone; i++) {
		int64_t rank = row_integer(&t->rows[i], RANK);
		struct trace_rank *r;
		char host[64];

		if (strcmp(t->rows[i].table, "memory_snapshot") != 0 || trace_find_rank(t, (int32_t)rank))
			continue;
		snprintf(host, sizeof host, "of rank %lld", (long long)rank);
		r = trace_add_rank(t, (int32_t)rank, host);
		if (!r)
			return false;
		r->clock = t->n_ranks - 1;
		t->clock_method = "none: each memory snapshot has its host's clock";
	}
	return true;
}

/* Of each rank the newest refusal: what it lived through is no failure that a rule should weigh. */
bool memory_join(struct trace *t)
{
	const struct trace_row *last = NULL;

	if (!add_ranks(t))
		return false;
	for (uint32_t i = 0; i <= t->n_rows; i++) {
		const struct trace_row *v = i < t->n_rows && strcmp(t->rows[i].table, "memory_oom") == 0 ? &t->rows[i] : NULL;

		if (last && (i == t->n_rows || (v && row_integer(v, RANK) != row_integer(last, RANK))) && !note_oom(t, last))
			return false;
		last = v ? v : last;
	}
	return true;
}
