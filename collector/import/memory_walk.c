/* memory_walk.c - the allocator's events undone one by one, from the known end back to each refusal.
 *
 * An event says what was asked for; a block is that, rounded up to 512 bytes, and in the pool of large
 * blocks it may keep up to 1 MiB that was not worth cutting off, never more than there is up to
 * the next block. That is the bound of what is known of a block that is gone at the end.
 */
#include "memory_snapshot.h"

#include <stdlib.h>

#define ROUND 512
#define SMALL (INT64_C(1) << 20) /* blocks of the small pool; the rest that is not cut off */
#define MAX_OOMS 64
#define MAX_LOOK 256 /* addresses that are looked at for the next block */

struct place { /* where a block begins, or a segment */
	int64_t address, size, slack;
	uint32_t site;
	enum memory_state state;
	bool was_allocated;
};

struct places {
	struct place *v;
	uint32_t n;
};

struct walk {
	struct memory_device *d;
	struct places blocks, segments;
	int64_t reserved, allocated, slack;
	bool blocks_known, segments_known, mapped; /* mapped: parts of segments came or went, their places are not followed */
};

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void sort_places(struct places *p)
{
	uint32_t n = 0;

	if (p->n > 0)
		qsort(p->v, p->n, sizeof *p->v, by_address);
	for (uint32_t i = 0; i < p->n; i++)
		if (n == 0 || p->v[n - 1].address != p->v[i].address)
			p->v[n++] = p->v[i];
	p->n = n;
}

/* The first that is not below. */
static uint32_t place_of(const struct places *p, int64_t address)
{
	uint32_t lo = 0, hi = p->n;

	while (lo < hi) {
		uint32_t at = lo + (hi - lo) / 2;

		if (p->v[at].address < address)
			lo = at + 1;
		else
			hi = at;
	}
	return lo;
}

static int64_t rounded(int64_t size)
{
	return size > 0 ? (size + ROUND - 1) / ROUND * ROUND : ROUND;
}

static bool is_of_block(const struct memory_event *e)
{
	return e->action <= MEMORY_FREE_COMPLETED;
}

static bool is_of_segment(const struct memory_event *e)
{
	return e->action == MEMORY_SEGMENT_ALLOC || e->action == MEMORY_SEGMENT_FREE;
}

static bool begin(struct walk *w)
{
	struct memory_device *d = w->d;

	w->blocks.v = calloc((size_t)d->n_blocks + d->n_events + 1, sizeof *w->blocks.v);
	w->segments.v = calloc((size_t)d->n_segments + d->n_events + 1, sizeof *w->segments.v);
	if (!w->blocks.v || !w->segments.v)
		return false;
	for (uint32_t i = 0; i < d->n_blocks; i++)
		if (d->blocks[i].state != MEMORY_FREE)
			w->blocks.v[w->blocks.n++].address = d->blocks[i].address;
	for (uint32_t i = 0; i < d->n_segments; i++)
		w->segments.v[w->segments.n++].address = d->segments[i].address;
	for (uint32_t i = 0; i < d->n_events; i++) {
		if (is_of_block(&d->events[i]))
			w->blocks.v[w->blocks.n++].address = d->events[i].address;
		if (is_of_segment(&d->events[i]))
			w->segments.v[w->segments.n++].address = d->events[i].address;
	}
	sort_places(&w->blocks);
	sort_places(&w->segments);
	for (uint32_t i = 0; i < d->n_blocks; i++)
		if (d->blocks[i].state != MEMORY_FREE) {
			struct place *p = &w->blocks.v[place_of(&w->blocks, d->blocks[i].address)];

			p->size = d->blocks[i].size;
			p->state = d->blocks[i].state;
			p->site = d->blocks[i].site;
		}
	for (uint32_t i = 0; i < d->n_segments; i++)
		w->segments.v[place_of(&w->segments, d->segments[i].address)].size = d->segments[i].size;
	w->reserved = d->reserved;
	w->allocated = d->allocated;
	w->blocks_known = w->segments_known = true;
	return true;
}

/* ---- backward ---- */

/* Where the segment ends that holds the address; INT64_MAX = not known. */
static int64_t end_of_segment(const struct walk *w, int64_t address)
{
	uint32_t at = place_of(&w->segments, address + 1);

	for (unsigned k = 0; k < MAX_LOOK && at-- > 0; k++) {
		const struct place *s = &w->segments.v[at];

		if (s->size > 0)
			return address - s->address < s->size ? s->address + s->size : INT64_MAX;
	}
	return INT64_MAX;
}

static int64_t slack_of(const struct walk *w, uint32_t at, int64_t size)
{
	int64_t address = w->blocks.v[at].address, next = end_of_segment(w, address), most;

	if (size <= SMALL && !w->d->whole_rounding)
		return 0;
	for (uint32_t i = at + 1; i < w->blocks.n && i - at < MAX_LOOK && w->blocks.v[i].address < next; i++)
		if (w->blocks.v[i].state != MEMORY_FREE)
			next = w->blocks.v[i].address;
	most = next == INT64_MAX ? MEMORY_MAX_BYTES : next - address - size;
	most = most > 0 ? most : 0;
	return w->d->whole_rounding || most < SMALL ? most : SMALL;
}

static bool undo_block(struct walk *w, const struct memory_event *e)
{
	uint32_t at = place_of(&w->blocks, e->address);
	struct place *p = &w->blocks.v[at];

	if (e->action == MEMORY_ALLOC) {
		if (p->state != MEMORY_LIVE || w->allocated < p->size)
			return false;
		w->allocated -= p->size;
		w->slack -= p->slack;
		p->state = MEMORY_FREE;
		p->slack = 0;
	} else if (e->action == MEMORY_FREE_REQUESTED) {
		if (p->state != MEMORY_AWAITING)
			return false;
		w->allocated += p->size;
		w->slack += p->slack;
		p->state = MEMORY_LIVE;
	} else {
		if (p->state != MEMORY_FREE)
			return false;
		p->size = rounded(e->size);
		p->slack = slack_of(w, at, p->size);
		p->state = MEMORY_AWAITING;
	}
	return w->allocated <= MEMORY_MAX_BYTES && w->slack <= MEMORY_MAX_BYTES;
}

static bool undo_segment(struct walk *w, const struct memory_event *e)
{
	bool came = e->action == MEMORY_SEGMENT_ALLOC || e->action == MEMORY_SEGMENT_MAP;

	w->reserved += came ? -e->size : e->size;
	if (w->reserved < 0 || w->reserved > MEMORY_MAX_BYTES)
		return false;
	if (is_of_segment(e)) {
		struct place *s = &w->segments.v[place_of(&w->segments, e->address)];

		if (came ? s->size != e->size : s->size != 0)
			return false;
		s->size = came ? 0 : e->size;
	} else {
		w->mapped = true;
	}
	return true;
}

static int64_t largest_gap(const struct walk *w)
{
	int64_t largest = 0;
	uint32_t b = 0;

	for (uint32_t i = 0; i < w->segments.n; i++) {
		const struct place *s = &w->segments.v[i];
		int64_t at = s->address;

		for (; s->size > 0 && b < w->blocks.n && w->blocks.v[b].address < s->address + s->size; b++) {
			const struct place *p = &w->blocks.v[b];

			if (p->state == MEMORY_FREE || p->address < s->address)
				continue;
			largest = p->address - at > largest ? p->address - at : largest;
			at = p->address + p->size > at ? p->address + p->size : at;
		}
		if (s->size > 0 && s->address + s->size - at > largest)
			largest = s->address + s->size - at;
	}
	return largest;
}

static void note_oom(const struct walk *w, struct memory_oom *o)
{
	bool blocks = w->blocks_known && w->segments_known;

	o->reserved = w->segments_known ? w->reserved : MEMORY_UNKNOWN;
	o->allocated = o->allocated_err = o->largest_free = MEMORY_UNKNOWN;
	if (!w->blocks_known)
		return;
	if (w->segments_known && w->allocated > w->reserved)
		return;
	o->allocated = w->allocated;
	o->allocated_err = w->slack;
	if (blocks && w->reserved - w->allocated < w->slack)
		o->allocated_err = w->reserved - w->allocated;
	if (blocks && !w->mapped)
		o->largest_free = largest_gap(w);
}

static void backward(struct walk *w)
{
	struct memory_device *d = w->d;
	uint32_t left = d->n_ooms;

	for (uint32_t i = d->n_events; i-- > 0;) {
		const struct memory_event *e = &d->events[i];

		if (e->action == MEMORY_OOM && left > 0) {
			d->ooms[--left].event = i;
			note_oom(w, &d->ooms[left]);
		} else if (is_of_block(e)) {
			w->blocks_known = w->blocks_known && undo_block(w, e);
		} else if (e->action != MEMORY_OOM) {
			w->segments_known = w->segments_known && undo_segment(w, e);
		}
	}
}

/* ---- forward: who has what ---- */

static void give(struct memory_device *d, struct place *p, uint32_t site, int64_t size)
{
	p->site = site;
	p->size = rounded(size);
	p->state = MEMORY_LIVE;
	d->sites[site].n_live++;
	d->sites[site].live += p->size;
}

static void take(struct memory_device *d, struct place *p)
{
	struct memory_site *s = &d->sites[p->site];

	if (p->state != MEMORY_LIVE) /* from before the history */
		return;
	p->state = MEMORY_FREE;
	s->n_live--;
	s->live -= p->size;
	s->n_freed++;
	s->freed += p->size;
}

static void look_at_sites(const struct memory_device *d, const uint32_t *last, uint32_t n_allocs, struct memory_oom *o)
{
	const struct memory_site *best = NULL;

	for (uint32_t i = 1; i < d->n_sites; i++)
		if (d->sites[i].live > 0 && (!best || d->sites[i].live > best->live)) {
			best = &d->sites[i];
			o->site = i;
		}
	if (!best)
		return;
	o->n_held = best->n_live;
	o->held = best->live;
	o->none_freed = best->n_freed == 0;
	o->still_used = d->events[o->event].site == o->site || (last[o->site] > 0 && n_allocs - last[o->site] <= n_allocs / 10);
}

/* Those that were there before the first event and at the end are their sites' from the begin. */
static void start_forward(struct walk *w)
{
	struct memory_device *d = w->d;

	for (uint32_t i = 0; i < w->blocks.n; i++)
		w->blocks.v[i].state = MEMORY_FREE;
	for (uint32_t i = 0; i < d->n_events; i++)
		if (is_of_block(&d->events[i]))
			w->blocks.v[place_of(&w->blocks, d->events[i].address)].was_allocated = true;
	for (uint32_t i = 0; i < d->n_blocks; i++) {
		struct place *p = &w->blocks.v[place_of(&w->blocks, d->blocks[i].address)];

		if (d->blocks[i].state == MEMORY_LIVE && !p->was_allocated)
			give(d, p, d->blocks[i].site, d->blocks[i].size);
	}
}

static bool forward(struct walk *w)
{
	struct memory_device *d = w->d;
	uint32_t *last = calloc(d->n_sites, sizeof *last), n_allocs = 0, oom = 0;

	if (!last)
		return false;
	start_forward(w);
	for (uint32_t i = 0; i < d->n_events; i++) {
		const struct memory_event *e = &d->events[i];
		struct place *p = is_of_block(e) ? &w->blocks.v[place_of(&w->blocks, e->address)] : NULL;

		if (oom < d->n_ooms && d->ooms[oom].event == i)
			look_at_sites(d, last, n_allocs, &d->ooms[oom++]);
		if (e->action == MEMORY_ALLOC) {
			if (p->state == MEMORY_LIVE)
				take(d, p); /* its end was not told */
			give(d, p, e->site, e->size);
			d->sites[e->site].n_allocated++;
			d->sites[e->site].allocated += p->size;
			last[e->site] = ++n_allocs;
		} else if (e->action == MEMORY_FREE_REQUESTED) {
			take(d, p);
		}
	}
	free(last);
	return true;
}

/* At the end blocks say it themselves; of one that does not, its last allocation does. */
static void settle(struct walk *w)
{
	struct memory_device *d = w->d;

	for (uint32_t i = 0; i < d->n_sites; i++)
		d->sites[i].n_live = d->sites[i].live = 0;
	for (uint32_t i = 0; i < d->n_blocks; i++) {
		struct memory_block *b = &d->blocks[i];

		if (b->state != MEMORY_LIVE)
			continue;
		if (b->site == MEMORY_NO_SITE)
			b->site = w->blocks.v[place_of(&w->blocks, b->address)].site;
		d->sites[b->site].n_live++;
		d->sites[b->site].live += b->size;
	}
}

bool memory_walk(struct memory_device *d)
{
	struct walk w = { .d = d };
	bool fine;

	for (uint32_t i = 0; i < d->n_events; i++)
		d->n_ooms += d->events[i].action == MEMORY_OOM;
	d->n_ooms = d->n_ooms < MAX_OOMS ? d->n_ooms : MAX_OOMS;
	d->ooms = calloc((size_t)d->n_ooms + 1, sizeof *d->ooms);
	fine = d->ooms && begin(&w);
	if (fine) {
		backward(&w);
		fine = forward(&w);
	}
	if (fine)
		settle(&w);
	free(w.blocks.v);
	free(w.segments.v);
	return fine;
}
