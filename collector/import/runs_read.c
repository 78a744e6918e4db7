/* runs_read.c - records in the order of their keys: sorted in memory, merged from the
 * file. */
#include "runs_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- in memory ---- */

struct item {
	struct runs_key key;
	uint32_t at;
};

static unsigned byte_of(const struct item *v, unsigned i)
{
	return (unsigned)((i < 8 ? v->key.lo >> 8 * i : v->key.hi >> 8 * (i - 8)) & 0xff);
}

static void sort_by_byte(const struct item *from, struct item *to, size_t n, unsigned byte)
{
	size_t at[256] = { 0 }, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[byte_of(&from[i], byte)]++;
	for (size_t i = 0; i < 256; i++) {
		size_t here = at[i];

		at[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < n; i++)
		to[at[byte_of(&from[i], byte)]++] = from[i];
}

/* Byte by byte from the lowest, those alone in which the keys differ: keys are times and
 * numbers, of which the upper bytes seldom do. */
uint32_t *runs_order(const unsigned char *records, size_t n, size_t size, runs_key_fn key)
{
	struct item *v = malloc((n + 1) * sizeof *v), *other = malloc((n + 1) * sizeof *other);
	uint32_t *order = malloc((n + 1) * sizeof *order);
	struct item differ = { { 0, 0 }, 0 };

	if (!v || !other || !order) {
		free(v);
		free(other);
		free(order);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		v[i] = (struct item){ key(records + i * size), (uint32_t)i };
		differ.key.hi |= v[i].key.hi ^ v[0].key.hi;
		differ.key.lo |= v[i].key.lo ^ v[0].key.lo;
	}
	for (unsigned byte = 0; byte < 16; byte++)
		if (byte_of(&differ, byte) != 0) {
			struct item *sorted = other;

			sort_by_byte(v, sorted, n, byte);
			other = v;
			v = sorted;
		}
	for (size_t i = 0; i < n; i++)
		order[i] = v[i].at;
	free(v);
	free(other);
	return order;
}

/* ---- from the file ---- */

struct runs_head {
	struct runs_key key; /* of the next record */
	uint32_t turn;	     /* of the run among the others */
	struct run left;     /* behind the buffer */
	unsigned char *buffer;
	size_t at, n; /* records in the buffer */
};

static bool is_before(const struct runs_head *a, const struct runs_head *b)
{
	if (a->key.hi != b->key.hi)
		return a->key.hi < b->key.hi;
	if (a->key.lo != b->key.lo)
		return a->key.lo < b->key.lo;
	return a->turn < b->turn;
}

static void sift(struct runs_head *v, uint32_t n, uint32_t i)
{
	struct runs_head moved = v[i];

	for (;;) {
		uint32_t below = 2 * i + 1;

		if (below + 1 < n && is_before(&v[below + 1], &v[below]))
			below++;
		if (below >= n || !is_before(&v[below], &moved))
			break;
		v[i] = v[below];
		i = below;
	}
	v[i] = moved;
}

/* The next record of the run is there: false at its end, or when the file failed. */
static bool fill(struct runs_reader *in, struct runs_head *h)
{
	const struct runs *r = in->runs;

	if (h->at == h->n) {
		h->at = 0;
		h->n = RUNS_READ_BYTES / r->size;
		if (h->n > h->left.n)
			h->n = (size_t)h->left.n;
		if (h->n == 0)
			return false;
		if (!spill_read(r->spill, h->left.at_bytes, h->buffer, h->n * r->size)) {
			in->failed = true;
			return false;
		}
		h->left.at_bytes += h->n * r->size;
		h->left.n -= h->n;
	}
	if (r->key)
		h->key = r->key(h->buffer + h->at * r->size);
	return true;
}

struct runs_reader *runs_read_some(struct runs *r, uint32_t from, uint32_t to)
{
	struct runs_reader *in = calloc(1, sizeof *in);
	bool fine = in != NULL;

	if (!fine)
		return NULL;
	in->runs = r;
	in->heads = calloc((size_t)(to - from) + 1, sizeof *in->heads);
	fine = in->heads != NULL;
	for (uint32_t i = from; i < to && fine; i++) {
		struct runs_head *h = &in->heads[in->n_heads];

		*h = (struct runs_head){ .turn = i, .left = r->v[i], .buffer = malloc(RUNS_READ_BYTES) };
		fine = h->buffer != NULL;
		if (fine && fill(in, h))
			in->n_heads++;
		else
			free(h->buffer);
		fine = fine && !in->failed;
	}
	for (uint32_t i = in->n_heads / 2; i-- > 0;)
		sift(in->heads, in->n_heads, i);
	if (fine)
		return in;
	runs_read_end(in);
	return NULL;
}

struct runs_reader *runs_read(struct runs *r)
{
	return runs_read_some(r, 0, r->n_runs);
}

static const void *next_in_file(struct runs_reader *in)
{
	struct runs_head *first = in->heads;

	if (in->n_heads == 0)
		return NULL;
	if (in->started) {
		first->at++;
		if (!fill(in, first)) {
			free(first->buffer);
			*first = in->heads[--in->n_heads];
		}
		if (in->n_heads > 1)
			sift(in->heads, in->n_heads, 0);
	}
	in->started = true;
	return in->n_heads > 0 && !in->failed ? first->buffer + first->at * in->runs->size : NULL;
}

const void *runs_next(struct runs_reader *in)
{
	const struct runs *r = in->runs;

	if (in->failed)
		return NULL;
	if (r->n_runs == 0)
		return in->at < r->n ? r->buffer + in->at++ * r->size : NULL;
	return next_in_file(in);
}

void runs_read_end(struct runs_reader *in)
{
	if (!in)
		return;
	for (uint32_t i = 0; i < in->n_heads; i++)
		free(in->heads[i].buffer);
	free(in->heads);
	free(in);
}
