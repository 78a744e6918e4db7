#include "runs_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BUFFER_BYTES (8u << 20)
#define MIN_BUFFER_BYTES (256u << 10) /* is not asked for */
#define WRITE_BYTES 65536u
#define MAX_MERGED 64 /* runs at once */

struct runs *runs_new(struct spill *s, size_t record_bytes, runs_key_fn key)
{
	struct runs *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->spill = spill_ref(s);
	r->size = record_bytes;
	r->key = key;
	r->sorted = true;
	return r;
}

static void free_buffer(struct runs *r)
{
	free(r->buffer);
	spill_release(r->spill, r->n_alloc * r->size);
	r->buffer = NULL;
	r->n = r->n_alloc = 0;
}

void runs_free(struct runs *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->n_runs; i++)
		spill_drop(r->spill, r->v[i].at_bytes, r->v[i].n * r->size);
	free_buffer(r);
	free(r->v);
	spill_unref(r->spill);
	free(r);
}

uint64_t runs_count(const struct runs *r)
{
	return r->n_total;
}

/* ---- writing ---- */

struct writer {
	struct runs *r;
	struct run run;
	size_t n; /* waiting */
	unsigned char waiting[WRITE_BYTES];
};

static bool write_waiting(struct writer *w)
{
	size_t n_bytes = w->n * w->r->size;
	bool fine = spill_write(w->r->spill, w->run.at_bytes + w->run.n * w->r->size, w->waiting, n_bytes);

	w->run.n += w->n;
	w->n = 0;
	return fine;
}

static bool put(struct writer *w, const void *record)
{
	memcpy(w->waiting + w->n * w->r->size, record, w->r->size);
	return ++w->n < sizeof w->waiting / w->r->size || write_waiting(w);
}

static struct writer *begin_run(struct runs *r, uint64_t n)
{
	struct writer *w = malloc(sizeof *w);

	if (!w)
		return NULL;
	w->r = r;
	w->n = 0;
	w->run.n = 0;
	if (!spill_place(r->spill, n * r->size, &w->run.at_bytes)) {
		free(w);
		return NULL;
	}
	return w;
}

static bool end_run(struct writer *w, struct run *ret, bool fine)
{
	fine = fine && write_waiting(w);
	*ret = w->run;
	free(w);
	return fine;
}

static bool write_buffer(struct runs *r)
{
	uint32_t *order = r->sorted ? NULL : runs_order(r->buffer, r->n, r->size, r->key);
	struct writer *w = r->sorted || order ? begin_run(r, r->n) : NULL;
	bool fine = w != NULL;

	if (fine && r->n_runs == r->n_runs_alloc) {
		uint32_t want = r->n_runs_alloc ? 2 * r->n_runs_alloc : 16;
		struct run *grown = realloc(r->v, want * sizeof *grown);

		fine = grown != NULL;
		if (fine) {
			r->v = grown;
			r->n_runs_alloc = want;
		}
	}
	for (size_t i = 0; i < r->n && fine; i++)
		fine = put(w, r->buffer + (order ? order[i] : i) * r->size);
	if (w) {
		struct run run;

		fine = end_run(w, &run, fine);
		if (fine)
			r->v[r->n_runs++] = run;
	}
	free(order);
	r->n = 0;
	r->sorted = true;
	return fine;
}

/* ---- appending ---- */

static bool grow(struct runs *r)
{
	size_t want = r->n_alloc ? 2 * r->n_alloc : 64, more = (want - r->n_alloc) * r->size;
	unsigned char *grown;

	if (r->n_alloc > 0 && want * r->size > MAX_BUFFER_BYTES)
		return false;
	if (r->n_alloc == 0 || want * r->size <= MIN_BUFFER_BYTES)
		spill_take(r->spill, more);
	else if (!spill_ask(r->spill, more, 0))
		return false;
	grown = realloc(r->buffer, want * r->size);
	if (!grown) {
		spill_release(r->spill, more);
		return false;
	}
	r->buffer = grown;
	r->n_alloc = want;
	return true;
}

static bool is_after(struct runs_key a, struct runs_key b)
{
	return a.hi != b.hi ? a.hi > b.hi : a.lo > b.lo;
}

/* What is there stays where it is: in order, and before what comes. */
static void begin_again(struct runs *r)
{
	r->finished = false;
	r->sorted = true;
	if (r->key && r->n > 0)
		r->last = r->key(r->buffer + (r->n - 1) * r->size);
}

bool runs_append(struct runs *r, const void *record)
{
	if (r->finished)
		begin_again(r);
	if (r->n == r->n_alloc && !grow(r) && (r->n == 0 || !write_buffer(r)))
		return false;
	if (r->key) {
		struct runs_key key = r->key(record);

		r->sorted &= r->n == 0 || !is_after(r->last, key);
		r->last = key;
	}
	memcpy(r->buffer + r->n++ * r->size, record, r->size);
	r->n_total++;
	return true;
}

/* ---- finishing ---- */

/* Few enough that others find room, too. */
static bool keep_in_memory(struct runs *r)
{
	unsigned char *tight;
	uint32_t *order;

	spill_release(r->spill, r->n_alloc * r->size);
	if (!spill_ask(r->spill, r->n * r->size, 2)) {
		spill_take(r->spill, r->n_alloc * r->size);
		return false;
	}
	tight = malloc(r->n * r->size + 1);
	order = r->sorted ? NULL : runs_order(r->buffer, r->n, r->size, r->key);
	if (!tight || (!r->sorted && !order)) {
		free(tight);
		free(order);
		spill_release(r->spill, r->n * r->size);
		spill_take(r->spill, r->n_alloc * r->size);
		return false;
	}
	if (r->sorted)
		memcpy(tight, r->buffer, r->n * r->size);
	for (size_t i = 0; i < r->n && order; i++)
		memcpy(tight + i * r->size, r->buffer + order[i] * r->size, r->size);
	free(order);
	free(r->buffer);
	r->buffer = tight;
	r->n_alloc = r->n;
	return true;
}

static bool merge(struct runs *r, uint32_t from, uint32_t to, struct run *ret)
{
	struct runs_reader *in = runs_read_some(r, from, to);
	struct writer *w;
	const void *record;
	uint64_t n = 0;
	bool fine = in != NULL;

	for (uint32_t i = from; i < to; i++)
		n += r->v[i].n;
	w = fine ? begin_run(r, n) : NULL;
	fine = w != NULL;
	while (fine && (record = runs_next(in)))
		fine = put(w, record);
	fine = fine && !in->failed;
	if (w)
		fine = end_run(w, ret, fine);
	runs_read_end(in);
	return fine;
}

/* Neighbours, so that equal keys keep their order. */
static bool merge_to(struct runs *r, uint32_t max)
{
	while (r->n_runs > max) {
		uint32_t n = 0;

		for (uint32_t from = 0; from < r->n_runs; n++) {
			uint32_t to = from + MAX_MERGED < r->n_runs ? from + MAX_MERGED : r->n_runs;
			struct run run;

			if (to - from == 1) {
				r->v[n] = r->v[from++];
				continue;
			}
			if (!merge(r, from, to, &run))
				return false;
			for (; from < to; from++)
				spill_drop(r->spill, r->v[from].at_bytes, r->v[from].n * r->size);
			r->v[n] = run;
		}
		r->n_runs = n;
	}
	return true;
}

/* Those of one rank are read at once with those of all others: one run each. */
bool runs_finish(struct runs *r)
{
	if (r->finished)
		return true;
	r->finished = true;
	if (r->n_runs == 0 && (r->n == 0 || keep_in_memory(r)))
		return true;
	if (r->n > 0 && !write_buffer(r))
		return false;
	free_buffer(r);
	return merge_to(r, 1);
}
