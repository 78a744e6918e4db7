#include "picture.h"

#include "pack.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_TILES 512
#define CACHE_BYTES ((size_t)16 << 20)

/* Codes of heat.h. */
#define CODE_NONE 0
#define CODE_MISSING 1
#define CODE_LOW 2
#define CODE_HIGH 252
#define CODE_UNSURE 253
#define CODE_NOT_FINITE 254

/* Offsets in a tile's header. */
#define HEAD_ZS 11
#define HEAD_ZR 12
#define HEAD_X 16
#define HEAD_Y 20
#define HEAD_LO 24
#define HEAD_HI 32

struct cached {
	struct picture_tile *tile; /* NULL: free slot */
	struct heat_key key;
	uint32_t heat_rev; /* of the whole heat when this was last known to be true */
	uint64_t used;
};

struct picture {
	struct cached cache[CACHE_TILES];
	size_t n_bytes;
	uint64_t clock;
	unsigned char raw[HEAT_TILE_BYTES];
};

int picture_new(struct picture **ret)
{
	struct picture *p = calloc(1, sizeof *p);

	if (!p)
		return -ENOMEM;
	*ret = p;
	return 0;
}

void picture_unref(struct picture_tile *t)
{
	if (t && --t->n_refs == 0)
		free(t);
}

static void drop(struct picture *p, struct cached *c)
{
	p->n_bytes -= c->tile->n;
	picture_unref(c->tile);
	c->tile = NULL;
}

void picture_free(struct picture *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < CACHE_TILES; i++) {
		if (p->cache[i].tile)
			drop(p, &p->cache[i]);
	}
	free(p);
}

static bool same_key(const struct heat_key *a, const struct heat_key *b)
{
	return a->metric == b->metric && a->baseline == b->baseline && a->agg == b->agg &&
	       a->zs == b->zs && a->zr == b->zr && a->x == b->x && a->y == b->y;
}

static struct cached *lookup(struct picture *p, const struct heat_key *key)
{
	for (size_t i = 0; i < CACHE_TILES; i++) {
		if (p->cache[i].tile && same_key(&p->cache[i].key, key))
			return &p->cache[i];
	}
	return NULL;
}

/* A slot for n more bytes: the free one, or the one unused longest. */
static struct cached *make_room(struct picture *p, size_t n)
{
	for (;;) {
		struct cached *oldest = NULL, *empty = NULL;

		for (size_t i = 0; i < CACHE_TILES; i++) {
			struct cached *c = &p->cache[i];

			if (!c->tile)
				empty = c;
			else if (!oldest || c->used < oldest->used)
				oldest = c;
		}
		if (empty && p->n_bytes + n <= CACHE_BYTES)
			return empty;
		if (!oldest)
			return NULL; /* larger than the whole cache */
		drop(p, oldest);
	}
}

static struct picture_tile *tile_of(const void *data, size_t n, bool gzip, uint32_t rev,
				    bool sealed)
{
	struct picture_tile *t = malloc(sizeof *t + n);

	if (!t)
		return NULL;
	*t = (struct picture_tile){ .n_refs = 1, .rev = rev, .sealed = sealed, .gzip = gzip, .n = n };
	memcpy(t->data, data, n);
	return t;
}

int picture_tile(struct picture *p, struct heat *heat, const struct heat_key *key, bool gzip,
		 struct picture_tile **ret)
{
	struct cached *c = lookup(p, key);
	uint32_t rev = 0, heat_now = heat_rev(heat);
	struct picture_tile *t;
	unsigned char *packed;
	bool sealed = false;
	size_t n_packed;
	int r;

	if (c && gzip && c->heat_rev == heat_now) {
		c->used = ++p->clock;
		c->tile->n_refs++;
		*ret = c->tile;
		return 0;
	}
	r = heat_tile(heat, key, p->raw, &rev, &sealed);
	if (r < 0)
		return r;
	if (!gzip) {
		*ret = tile_of(p->raw, sizeof p->raw, false, rev, sealed);
		return *ret ? 0 : -ENOMEM;
	}
	if (c && c->tile->rev == rev && c->tile->sealed == sealed && r == 0) {
		c->heat_rev = heat_now;
		c->used = ++p->clock;
		c->tile->n_refs++;
		*ret = c->tile;
		return 0;
	}
	r = pack_gzip(p->raw, sizeof p->raw, &packed, &n_packed);
	if (r < 0)
		return r;
	t = tile_of(packed, n_packed, true, rev, sealed);
	free(packed);
	if (!t)
		return -ENOMEM;
	if (c)
		drop(p, c);
	c = make_room(p, n_packed);
	if (c) {
		*c = (struct cached){ .tile = t, .key = *key, .heat_rev = heat_now, .used = ++p->clock };
		p->n_bytes += n_packed;
		t->n_refs++;
	}
	*ret = t;
	return 0;
}

static double decode(unsigned char code, enum heat_baseline baseline, double lo_ns, double hi_ns)
{
	return baseline == HEAT_PEERS ? heat_excess_of_code(code)
				      : heat_raw_of_code(code, lo_ns, hi_ns);
}

static unsigned char encode(double v, enum heat_baseline baseline, double lo_ns, double hi_ns)
{
	return baseline == HEAT_PEERS ? heat_code_excess(v) : heat_code_raw(v, lo_ns, hi_ns);
}

unsigned char picture_fold(const unsigned char *codes, size_t n, enum heat_agg agg,
			   enum heat_baseline baseline, double lo_ns, double hi_ns)
{
	unsigned char largest = 0, smallest = 255;
	bool missing = false, unsure = false, not_finite = false;
	size_t n_values = 0;
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = codes[i];

		not_finite |= c == CODE_NOT_FINITE;
		missing |= c == CODE_MISSING;
		unsure |= c == CODE_UNSURE;
		if (c < CODE_LOW || c > CODE_HIGH)
			continue;
		n_values++;
		largest = c > largest ? c : largest;
		smallest = c < smallest ? c : smallest;
		if (agg == HEAT_MEAN)
			sum += decode(c, baseline, lo_ns, hi_ns);
	}
	if (n_values == 0)
		return unsure ? CODE_UNSURE : not_finite ? CODE_NOT_FINITE
				: missing ? CODE_MISSING : CODE_NONE;
	if (agg == HEAT_MIN || largest == smallest)
		return smallest;
	if (agg == HEAT_MEAN)
		return encode(sum / (double)n_values, baseline, lo_ns, hi_ns);
	return largest;
}

static double get_f64(const unsigned char *p)
{
	uint64_t bits;
	double v;

	memcpy(&bits, p, sizeof bits);
	bits = le64toh(bits);
	memcpy(&v, &bits, sizeof v);
	return v;
}

static void put_u32(unsigned char *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof v);
}

/* Cells of one block of 256 steps, all ranks, columns apart: cells[column][cell]. */
struct block {
	size_t n_cells; /* a multiple of HEAT_SIDE */
	unsigned char *cells;
	unsigned char tile[HEAT_TILE_BYTES];
};

/* Tiles of a raw baseline may differ in scale; all take that of the first one. */
static void take_tile(struct block *b, size_t at, const struct heat_key *key, double lo_ns,
		      double hi_ns)
{
	double tile_lo_ns = get_f64(b->tile + HEAD_LO), tile_hi_ns = get_f64(b->tile + HEAD_HI);
	const unsigned char *cell = b->tile + HEAT_HEAD_BYTES;
	unsigned char same[256];
	bool rescale = key->baseline == HEAT_RAW && (tile_lo_ns != lo_ns || tile_hi_ns != hi_ns);

	for (unsigned c = 0; c < 256; c++) {
		same[c] = (unsigned char)c;
		if (rescale && c >= CODE_LOW && c <= CODE_HIGH)
			same[c] = heat_code_raw(heat_raw_of_code((unsigned char)c, tile_lo_ns, tile_hi_ns),
						lo_ns, hi_ns);
	}
	for (size_t row = 0; row < HEAT_SIDE; row++) {
		for (size_t col = 0; col < HEAT_SIDE; col++)
			b->cells[col * b->n_cells + at + row] = same[*cell++];
	}
}

int picture_cols(struct heat *heat, const struct route_request *r, unsigned char **ret,
		 size_t *ret_n)
{
	struct heat_key key = r->key;
	uint32_t first_step, last_step, n_ranks, rev;
	size_t n_cols = r->to - r->from + 1, n_out = HEAT_HEAD_BYTES + n_cols * r->rows;
	double lo_ns = 0, hi_ns = 0;
	unsigned char *out = NULL;
	struct block *b = NULL;
	bool sealed;
	int result = -ENOMEM;

	heat_bounds(heat, &first_step, &last_step, &n_ranks);
	if (n_ranks == 0)
		n_ranks = 1;
	/* The coarsest cells that are still finer than a row: at most two a row. */
	key.zs = key.zr = 0;
	while (n_ranks >> (key.zr + 1) >= r->rows && key.zr < ROUTE_MAX_ZOOM)
		key.zr++;

	out = calloc(1, n_out);
	b = calloc(1, sizeof *b);
	if (!out || !b)
		goto out;
	b->n_cells = ((((size_t)n_ranks - 1) >> key.zr) / HEAT_SIDE + 1) * HEAT_SIDE;
	b->cells = malloc(b->n_cells * HEAT_SIDE);
	if (!b->cells)
		goto out;

	for (uint32_t x = r->from / HEAT_SIDE; x <= r->to / HEAT_SIDE; x++) {
		uint32_t first = x * HEAT_SIDE > r->from ? x * HEAT_SIDE : r->from;
		uint32_t last = r->to - x * HEAT_SIDE < HEAT_SIDE ? r->to : x * HEAT_SIDE + HEAT_SIDE - 1;

		for (size_t at = 0; at < b->n_cells; at += HEAT_SIDE) {
			key.x = x;
			key.y = (uint32_t)(at / HEAT_SIDE);
			result = heat_tile(heat, &key, b->tile, &rev, &sealed);
			if (result < 0)
				goto out;
			if (x == r->from / HEAT_SIDE && at == 0) {
				memcpy(out, b->tile, HEAT_HEAD_BYTES);
				lo_ns = get_f64(out + HEAD_LO);
				hi_ns = get_f64(out + HEAD_HI);
			}
			take_tile(b, at, &key, lo_ns, hi_ns);
		}
		for (uint32_t step = first;; step++) {
			const unsigned char *cells = b->cells + (step % HEAT_SIDE) * b->n_cells;
			unsigned char *col = out + HEAT_HEAD_BYTES + (size_t)(step - r->from) * r->rows;

			for (uint64_t row = 0; row < r->rows; row++) {
				uint64_t lo = row * n_ranks / r->rows;
				uint64_t hi = (row + 1) * n_ranks / r->rows;
				size_t cell = (size_t)(lo >> key.zr);
				size_t end = (size_t)((hi > lo ? hi - 1 : lo) >> key.zr) + 1;

				col[row] = picture_fold(cells + cell, end - cell, key.agg, key.baseline,
							lo_ns, hi_ns);
			}
			if (step == last)
				break;
		}
	}
	out[HEAD_ZS] = 0;
	out[HEAD_ZR] = 0;
	put_u32(out + HEAD_X, r->from);
	put_u32(out + HEAD_Y, 0);
	*ret = out;
	*ret_n = n_out;
	out = NULL;
	result = 0;
out:
	if (b)
		free(b->cells);
	free(b);
	free(out);
	return result;
}
