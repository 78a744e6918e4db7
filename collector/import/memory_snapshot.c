/* memory_snapshot.c - a snapshot's tree as plain values, one device after the other.
 *
 * Releases differ: blocks had no addresses and a history instead of frames, events had no time, the ring is
 * empty where it was not asked for. What is not there stays unknown; what contradicts itself is refused.
 */
#include "memory_snapshot.h"
#include "flight.h"
#include "rank_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES 256
#define MAX_SITES 65536
#define MAX_NS (INT64_C(1) << 61)
#define N_CACHED 4096

struct reader {
	struct memory_device d;
	const json_t *tree;
	bool no_memory;
	struct { /* lists of frames are shared by events */
		const json_t *frames;
		uint32_t site;
	} cached[N_CACHED];
	char *why;
	size_t n_why;
};

static bool fail(struct reader *r, const char *why)
{
	snprintf(r->why, r->n_why, "%s", why);
	return false;
}

static void *more(struct reader *r, void *v, uint32_t n, size_t *n_alloc, size_t size)
{
	size_t want = *n_alloc ? 2 * *n_alloc : 64;
	void *grown;

	if (n >= MEMORY_MAX_ITEMS) {
		fail(r, "has more blocks or events than 4194304");
		return NULL;
	}
	if (n < *n_alloc)
		return v;
	grown = realloc(v, want * size);
	r->no_memory |= !grown;
	*n_alloc = grown ? want : *n_alloc;
	return grown;
}

static int64_t amount(const json_t *v, const char *key)
{
	int64_t n = flight_integer(json_object_get(v, key), MEMORY_UNKNOWN);

	return n >= 0 && n <= MEMORY_MAX_BYTES ? n : MEMORY_UNKNOWN;
}

static int64_t address(const json_t *v, const char *key)
{
	int64_t n = flight_integer(json_object_get(v, key), MEMORY_UNKNOWN);

	return n >= 0 && n < INT64_MAX / 4 ? n : MEMORY_UNKNOWN;
}

/* ---- places in the program ---- */

static const char *text_of(const json_t *v, const char *key)
{
	return json_string_value(json_object_get(v, key));
}

static bool is_python(const char *file)
{
	size_t n = strlen(file);

	return n > 3 && strcmp(file + n - 3, ".py") == 0;
}

static bool is_library(const char *file)
{
	return strstr(file, "/torch/") || strncmp(file, "torch/", 6) == 0 || strstr(file, "site-packages/") ||
	       strstr(file, "dist-packages/");
}

/* The innermost of the program; else of another library; else any. */
static const json_t *own_frame(const json_t *frames)
{
	const json_t *other = NULL;
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)frames, i, v)
	{
		const char *file = text_of(v, "filename");

		if (!file || !is_python(file))
			continue;
		if (!is_library(file))
			return v;
		if (!other && !strstr(file, "/torch/") && strncmp(file, "torch/", 6) != 0)
			other = v;
	}
	return other ? other : json_array_get(frames, 0);
}

static uint32_t add_site(struct reader *r, const char *name)
{
	struct memory_device *d = &r->d;
	struct memory_site *grown;

	if (d->n_sites == MAX_SITES)
		return MEMORY_NO_SITE;
	grown = more(r, d->sites, d->n_sites, &d->n_sites_alloc, sizeof *d->sites);
	if (!grown)
		return MEMORY_NO_SITE;
	d->sites = grown;
	d->sites[d->n_sites] = (struct memory_site){ .name = name ? strdup(name) : NULL };
	r->no_memory |= name && (!d->sites[d->n_sites].name || json_object_set_new(d->site_ids, name, json_integer(d->n_sites)) != 0);
	return d->n_sites++;
}

static uint32_t site_of(struct reader *r, const json_t *frames)
{
	size_t slot = ((uintptr_t)frames >> 4) % N_CACHED;
	const json_t *frame, *known;
	char name[400];

	if (json_array_size(frames) == 0)
		return MEMORY_NO_SITE;
	if (r->cached[slot].frames == frames)
		return r->cached[slot].site;
	frame = own_frame(frames);
	snprintf(name, sizeof name, "%.200s:%lld %.120s", text_of(frame, "filename") ? text_of(frame, "filename") : "?",
		 (long long)flight_integer(json_object_get(frame, "line"), 0),
		 text_of(frame, "name") ? text_of(frame, "name") : "?");
	for (size_t n = strlen(name); n > 0 && json_string_length(json_object_get(frame, "name")) > 120 && (name[n - 1] & 0x80); n--)
		name[n - 1] = '\0'; /* no half of a character */
	known = json_object_get(r->d.site_ids, name);
	r->cached[slot].frames = frames;
	r->cached[slot].site = known ? (uint32_t)json_integer_value(known) : add_site(r, name);
	return r->cached[slot].site;
}

/* ---- the end ---- */

static bool read_block(struct reader *r, const json_t *v, int64_t *at, int64_t end)
{
	const char *state = text_of(v, "state");
	const json_t *old = json_array_get(json_object_get(v, "history"), 0), *frames = json_object_get(v, "frames");
	int64_t size = amount(v, "size"), said = address(v, "address");
	struct memory_device *d = &r->d;
	struct memory_block *grown;

	if (!state || size == MEMORY_UNKNOWN || size == 0 || size > end - *at || (said != MEMORY_UNKNOWN && said != *at))
		return fail(r, "has a segment whose blocks do not lie one behind the other in it");
	grown = more(r, d->blocks, d->n_blocks, &d->n_blocks_alloc, sizeof *grown);
	if (!grown)
		return false;
	d->blocks = grown;
	grown[d->n_blocks] = (struct memory_block){ *at, size, MEMORY_NO_SITE, strcmp(state, "inactive") == 0 ? MEMORY_FREE :
						   strcmp(state, "active_allocated") == 0 ? MEMORY_LIVE : MEMORY_AWAITING };
	if (grown[d->n_blocks].state != MEMORY_FREE) {
		grown[d->n_blocks].site = site_of(r, frames ? frames : json_object_get(old, "frames"));
		d->active += size;
		d->allocated += grown[d->n_blocks].state == MEMORY_LIVE ? size : 0;
	}
	d->n_blocks++;
	*at += size;
	return !r->no_memory;
}

static bool is_private(const json_t *pool)
{
	return flight_integer(json_array_get(pool, 0), 0) != 0 || flight_integer(json_array_get(pool, 1), 0) != 0;
}

static bool read_segment(struct reader *r, const json_t *v)
{
	int64_t at = address(v, "address"), size = amount(v, "total_size"), end;
	const json_t *blocks = json_object_get(v, "blocks"), *expandable = json_object_get(v, "is_expandable");
	struct memory_device *d = &r->d;
	int64_t active = d->active;
	struct memory_segment *grown;
	json_t *block;
	size_t i;

	if (at == MEMORY_UNKNOWN || size == MEMORY_UNKNOWN || size == 0 || !json_is_array(blocks))
		return fail(r, "has a segment without an address, a size or blocks");
	grown = more(r, d->segments, d->n_segments, &d->n_segments_alloc, sizeof *grown);
	if (!grown)
		return false;
	d->segments = grown;
	grown[d->n_segments++] = (struct memory_segment){
		at, size, flight_integer(json_object_get(v, "stream"), MEMORY_UNKNOWN), text_of(v, "segment_type"),
		json_is_boolean(expandable) ? json_is_true(expandable) : -1, d->n_blocks, 0,
	};
	d->reserved += size;
	if (d->reserved > MEMORY_MAX_BYTES)
		return fail(r, "has segments of more bytes than any device has");
	end = at + size;
	json_array_foreach((json_t *)blocks, i, block)
		if (!read_block(r, block, &at, end))
			return false;
	d->segments[d->n_segments - 1].n_blocks = d->n_blocks - d->segments[d->n_segments - 1].first_block;
	if (is_private(json_object_get(v, "segment_pool_id")))
		d->private_free += size - (d->active - active);
	return at == end || fail(r, "has a segment whose blocks do not fill it");
}

static int by_address(const void *a, const void *b)
{
	const struct memory_segment *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static bool read_end(struct reader *r)
{
	struct memory_device *d = &r->d;
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(r->tree, "segments"), i, v)
		if (flight_integer(json_object_get(v, "device"), 0) == d->device && !read_segment(r, v))
			return false;
	if (d->n_segments > 0)
		qsort(d->segments, d->n_segments, sizeof *d->segments, by_address);
	for (i = 1; i < d->n_segments; i++)
		if (d->segments[i - 1].address + d->segments[i - 1].size > d->segments[i].address)
			return fail(r, "has segments that lie in one another");
	return true;
}

/* ---- the history ---- */

static enum memory_action action_of(const json_t *v)
{
	static const char *const names[] = { "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
					     "segment_map", "segment_unmap", "oom" };
	const char *name = text_of(v, "action");
	unsigned i = 0;

	while (name && i < MEMORY_ACTIONS && strcmp(names[i], name) != 0)
		i++;
	return name ? i : MEMORY_ACTIONS;
}

static bool read_event(struct reader *r, const json_t *v, uint32_t seq)
{
	struct memory_event e = { .action = action_of(v), .seq = seq, .size = amount(v, "size") };
	int64_t us = flight_integer(json_object_get(v, "time_us"), 0);
	struct memory_device *d = &r->d;
	struct memory_event *grown;

	if (e.action == MEMORY_ACTIONS)
		return true;
	e.at_ns = us > 0 && us < MAX_NS / 1000 ? us * 1000 : MEMORY_UNKNOWN;
	e.device_free = e.action == MEMORY_OOM ? amount(v, "device_free") : MEMORY_UNKNOWN;
	/* A refusal had its device_free in the place of an address, once. */
	if (e.action == MEMORY_OOM && !json_object_get(v, "device_free"))
		e.device_free = amount(v, "addr");
	e.address = e.action == MEMORY_OOM ? 0 : address(v, "addr");
	e.stream = flight_integer(json_object_get(v, "stream"), MEMORY_UNKNOWN);
	if (e.size == MEMORY_UNKNOWN || e.address == MEMORY_UNKNOWN)
		return fail(r, "has an event in its history without an address or a size");
	e.site = site_of(r, json_object_get(v, "frames"));
	grown = more(r, d->events, d->n_events, &d->n_events_alloc, sizeof *grown);
	if (!grown)
		return false;
	d->events = grown;
	grown[d->n_events++] = e;
	return !r->no_memory;
}

/* The settings are told by newer releases. */
static bool may_round_more(const json_t *settings)
{
	const json_t *divisions = json_object_get(settings, "roundup_power2_divisions");
	const char *key;
	json_t *v;

	if (!json_is_object(settings) || !json_is_object(divisions) ||
	    flight_integer(json_object_get(settings, "max_split_size"), 0) != -1)
		return true;
	json_object_foreach((json_t *)divisions, key, v)
		if (flight_integer(v, 1) != 0)
			return true;
	return false;
}

static bool read_device(struct reader *r, size_t device)
{
	const json_t *events = json_array_get(json_object_get(r->tree, "device_traces"), device);
	json_t *v;
	size_t i;

	r->d.device = (int64_t)device;
	r->d.whole_rounding = may_round_more(json_object_get(r->tree, "allocator_settings"));
	r->d.site_ids = json_object();
	r->no_memory |= !r->d.site_ids;
	add_site(r, NULL);
	if (r->no_memory || !read_end(r))
		return false;
	json_array_foreach((json_t *)events, i, v)
		if (!read_event(r, v, (uint32_t)i))
			return false;
	r->no_memory |= !memory_walk(&r->d);
	return !r->no_memory;
}

static void free_device(struct memory_device *d)
{
	for (uint32_t i = 0; i < d->n_sites; i++)
		free(d->sites[i].name);
	free(d->sites);
	free(d->segments);
	free(d->blocks);
	free(d->events);
	free(d->ooms);
	json_decref(d->site_ids);
	*d = (struct memory_device){ 0 };
}

/* ---- a snapshot ---- */

bool memory_is(const json_t *tree)
{
	return json_is_array(json_object_get(tree, "segments")) &&
	       (json_object_get(tree, "device_traces") ||
		json_object_get(json_array_get(json_object_get(tree, "segments"), 0), "blocks"));
}

static int64_t find_rank(struct trace *t, struct reader *r, const struct trace_input *in, const char **from)
{
	int64_t rank = rank_of_path(in->path);

	*from = rank < 0 ? "assumed" : "name";
	if (rank < 0 && memory_has_rank(t, 0)) {
		fail(r, "does not say which rank it is, nor does its name: call it …_rank3.pickle, or what it is");
		return -1;
	}
	rank = rank < 0 ? 0 : rank;
	if (!memory_has_rank(t, rank))
		return rank;
	snprintf(r->why, r->n_why, "is of rank %lld, and so was a memory snapshot before it", (long long)rank);
	return -1;
}

static size_t n_devices(const json_t *tree)
{
	size_t n = json_array_size(json_object_get(tree, "device_traces")), i;
	json_t *v;

	json_array_foreach(json_object_get(tree, "segments"), i, v)
	{
		int64_t device = flight_integer(json_object_get(v, "device"), 0);

		if (device < 0 || device >= MAX_DEVICES)
			return MAX_DEVICES + 1;
		n = (size_t)device >= n ? (size_t)device + 1 : n;
	}
	return n;
}

struct sums {
	uint64_t n_events;
	uint32_t n_devices, n_ooms, n_left_out;
};

static bool read_all(struct trace *t, struct reader *r, int64_t rank, const char *from, struct sums *s)
{
	size_t n = n_devices(r->tree);
	bool fine = n <= MAX_DEVICES || fail(r, "tells of a device that there cannot be");

	for (size_t i = 0; i < n && fine; i++) {
		fine = read_device(r, i);
		if (fine && r->d.n_segments + r->d.n_events > 0) {
			s->n_devices++;
			s->n_ooms += r->d.n_ooms;
			s->n_events += r->d.n_events;
			r->no_memory |= !memory_put_rows(t, &r->d, rank, from, &s->n_left_out);
			fine = !r->no_memory;
		}
		free_device(&r->d);
		memset(r->cached, 0, sizeof r->cached);
	}
	return fine;
}

enum import_outcome memory_read(struct trace *t, struct trace_input *in, json_t *tree, char *why, size_t n_why)
{
	struct reader *r = calloc(1, sizeof *r);
	uint32_t n_rows = t->n_rows;
	struct sums s = { 0 };
	const char *from;
	int64_t rank;
	bool fine;

	if (!r) {
		t->no_memory = true;
		return IMPORT_FAILED;
	}
	r->tree = tree;
	r->why = why;
	r->n_why = n_why;
	rank = find_rank(t, r, in, &from);
	fine = rank >= 0 && read_all(t, r, rank, from, &s);
	t->no_memory |= r->no_memory;
	if (fine && s.n_devices == 0)
		fine = fail(r, "has no segment and no event: nothing was allocated, or nothing recorded");
	if (fine) {
		in->rank = rank;
		in->n_events = s.n_events;
		snprintf(why, n_why, "ok; %u device%s, %llu events of history%s, %u refused allocations%s%s", s.n_devices,
			 s.n_devices == 1 ? "" : "s", (unsigned long long)s.n_events,
			 s.n_events == 0 ? " (it was not recorded)" : "", s.n_ooms,
			 s.n_left_out > 0 ? "; the oldest rows are left out" : "",
			 strcmp(from, "assumed") == 0 ? "; neither it nor its name says which rank it is: taken as rank 0" : "");
	} else {
		trace_forget_rows(t, n_rows);
	}
	free(r);
	return fine ? IMPORT_OK : IMPORT_FAILED;
}
