#include "heat.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In memory a value is a code of 1/1024 octave: 0.07 % of its size, so that a
 * ratio of two codes is finer than a picture's code. */
#define PER_OCTAVE 1024
#define WIDE_NONE 0
#define WIDE_FLOOR 2 /* 0 or 1 ns */
#define WIDE_N (WIDE_FLOOR + 63 * PER_OCTAVE)
#define WIDE_UNSURE 65534
#define WIDE_NOT_FINITE 65535

enum { NO_DATA = 0, MISSING = 1, BELOW = 2, FIRST = 3, LAST = 251, ABOVE = 252, UNSURE = 253,
       NOT_FINITE = 254 };

#define EXCESS_LO (-0.5)
#define EXCESS_HI 4.0
#define EXCESS_FINE 0.0025

/* 256 steps of 256 ranks. Only as many rows as there are ranks, in powers of 2. */
struct block {
	uint32_t n_rows;
	uint16_t *codes; /* [metric][row][column] */
	struct fact_rank_step *exact; /* [row][column], or NULL */
};

/* All blocks of the same 256 steps, and the medians of each step in them. */
struct span {
	uint32_t x, rev, n_cells;
	bool dropped;
	struct block *blocks; /* by y */
	uint32_t n_blocks;
	/* Of each metric and step the three middle codes of all ranks: the median
	 * without one rank needs no more. */
	uint16_t (*middle)[HEAT_SIDE][3];
	uint16_t n_of[HEAT_N_METRICS][HEAT_SIDE]; /* ranks with a value */
	bool stale[HEAT_SIDE];
};

struct heat {
	struct span **spans; /* sorted by x */
	uint32_t n_spans, n_spans_alloc;
	uint32_t rev, scale_rev[HEAT_N_METRICS], expect_rev;
	uint16_t lo[HEAT_N_METRICS], hi[HEAT_N_METRICS]; /* raw scale: octaves; equal = none */
	bool any;
	uint32_t first_step, last_step, n_ranks;
	uint32_t n_expected, expect_first, expect_last;
	bool expects;
	uint64_t n_cells, n_exact;

	double *value; /* of a wide code, ns */

	/* scratch of one tile */
	struct cell {
		double sum, most, least;
		uint32_t n;
		unsigned char special;
	} *cells;
	uint16_t *column;
	uint32_t n_column_alloc;
};

static double solve_excess(void)
{
	double lo = 0.001, hi = 1;

	for (int i = 0; i < 60; i++) {
		double a = (lo + hi) / 2;

		if (a / EXCESS_FINE * (asinh(EXCESS_HI / a) - asinh(EXCESS_LO / a)) < LAST - FIRST)
			lo = a;
		else
			hi = a;
	}
	return (lo + hi) / 2;
}

/* Solved once; the result is the same for every caller, so a race is harmless. */
static double excess_a(void)
{
	static double a;

	if (a == 0)
		a = solve_excess();
	return a;
}

unsigned char heat_code_excess(double ratio)
{
	double a = excess_a(), c;

	if (isnan(ratio))
		return NOT_FINITE;
	c = FIRST + round((asinh(ratio / a) - asinh(EXCESS_LO / a)) * (a / EXCESS_FINE));
	return c < FIRST ? BELOW : c > LAST ? ABOVE : (unsigned char)c;
}

double heat_excess_of_code(unsigned char code)
{
	double a = excess_a();

	if (code <= FIRST)
		return EXCESS_LO;
	if (code >= LAST)
		return EXCESS_HI;
	return a * sinh((code - FIRST) / (a / EXCESS_FINE) + asinh(EXCESS_LO / a));
}

unsigned char heat_code_raw(double v_ns, double lo_ns, double hi_ns)
{
	if (!isfinite(v_ns))
		return NOT_FINITE;
	if (v_ns < lo_ns)
		return BELOW;
	if (v_ns > hi_ns)
		return ABOVE;
	return (unsigned char)(FIRST + lround(log(v_ns / lo_ns) / log(hi_ns / lo_ns) * (LAST - FIRST)));
}

double heat_raw_of_code(unsigned char code, double lo_ns, double hi_ns)
{
	if (code <= FIRST)
		return lo_ns;
	if (code >= LAST)
		return hi_ns;
	return lo_ns * pow(hi_ns / lo_ns, (double)(code - FIRST) / (LAST - FIRST));
}

int heat_new(struct heat **ret)
{
	struct heat *h = calloc(1, sizeof *h);

	if (!h)
		return -ENOMEM;
	h->value = malloc((WIDE_N + 1) * sizeof *h->value);
	h->cells = malloc(HEAT_SIDE * HEAT_SIDE * sizeof *h->cells);
	if (!h->value || !h->cells) {
		heat_free(h);
		return -ENOMEM;
	}
	h->value[0] = h->value[1] = NAN;
	for (unsigned i = WIDE_FLOOR; i <= WIDE_N; i++)
		h->value[i] = i == WIDE_FLOOR ? 0 : exp2((double)(i - WIDE_FLOOR) / PER_OCTAVE);
	*ret = h;
	return 0;
}

static void span_free(struct span *s)
{
	for (uint32_t i = 0; i < s->n_blocks; i++) {
		free(s->blocks[i].codes);
		free(s->blocks[i].exact);
	}
	free(s->blocks);
	free(s->middle);
	s->blocks = NULL;
	s->middle = NULL;
	s->n_blocks = 0;
}

void heat_free(struct heat *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; i < h->n_spans; i++) {
		span_free(h->spans[i]);
		free(h->spans[i]);
	}
	free(h->spans);
	free(h->value);
	free(h->cells);
	free(h->column);
	free(h);
}

static uint16_t wide(int64_t ns)
{
	if (ns < 0)
		return WIDE_NONE; /* not known */
	if (ns <= 1)
		return WIDE_FLOOR;
	return (uint16_t)(WIDE_FLOOR + lround(log2((double)ns) * PER_OCTAVE));
}

static void exact_drop(struct heat *h, struct span *s)
{
	for (uint32_t i = 0; i < s->n_blocks; i++) {
		if (!s->blocks[i].exact)
			continue;
		h->n_exact -= (uint64_t)s->blocks[i].n_rows * HEAT_SIDE;
		free(s->blocks[i].exact);
		s->blocks[i].exact = NULL;
	}
}

/* Keeps within the limits; never drops the span that is being filled. */
static void trim(struct heat *h, const struct span *busy)
{
	for (uint32_t i = 0; i < h->n_spans && h->n_exact > HEAT_MAX_EXACT; i++)
		if (h->spans[i] != busy)
			exact_drop(h, h->spans[i]);
	for (uint32_t i = 0; i < h->n_spans && h->n_cells > HEAT_MAX_CELLS; i++) {
		struct span *s = h->spans[i];

		if (s == busy || s->dropped)
			continue;
		exact_drop(h, s);
		for (uint32_t y = 0; y < s->n_blocks; y++)
			h->n_cells -= (uint64_t)s->blocks[y].n_rows * HEAT_SIDE;
		span_free(s);
		s->dropped = true;
		s->rev = ++h->rev;
	}
}

/* Raw scales are whole octaves, so they move seldom. */
static void widen_scale(struct heat *h, unsigned metric, unsigned octave)
{
	if (h->lo[metric] == h->hi[metric]) {
		h->lo[metric] = (uint16_t)octave;
		h->hi[metric] = (uint16_t)(octave + 1);
	} else if (octave < h->lo[metric]) {
		h->lo[metric] = (uint16_t)octave;
	} else if (octave >= h->hi[metric]) {
		h->hi[metric] = (uint16_t)(octave + 1);
	} else {
		return;
	}
	h->scale_rev[metric] = ++h->rev;
}

static struct span *span_find(const struct heat *h, uint32_t x)
{
	uint32_t lo = 0, hi = h->n_spans;

	if (hi > 0 && h->spans[hi - 1]->x == x) /* nearly always the newest */
		return h->spans[hi - 1];
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (h->spans[mid]->x == x)
			return h->spans[mid];
		if (h->spans[mid]->x < x)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static struct span *span_open(struct heat *h, uint32_t x)
{
	struct span *s = span_find(h, x);
	uint32_t i;

	if (s)
		return s;
	if (h->n_spans == h->n_spans_alloc) {
		uint32_t want = h->n_spans_alloc ? 2 * h->n_spans_alloc : 16;
		struct span **grown = realloc(h->spans, want * sizeof *grown);

		if (!grown)
			return NULL;
		h->spans = grown;
		h->n_spans_alloc = want;
	}
	s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->x = x;
	s->middle = calloc(HEAT_N_METRICS, sizeof *s->middle);
	if (!s->middle) {
		free(s);
		return NULL;
	}
	for (i = h->n_spans++; i > 0 && h->spans[i - 1]->x > x; i--)
		h->spans[i] = h->spans[i - 1];
	h->spans[i] = s;
	return s;
}

static int block_open(struct heat *h, struct span *s, uint32_t rank, struct block **ret)
{
	uint32_t y = rank / HEAT_SIDE, row = rank % HEAT_SIDE, want = 4;
	struct block *b;

	if (y >= s->n_blocks) {
		struct block *grown = realloc(s->blocks, (y + 1) * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		memset(grown + s->n_blocks, 0, (y + 1 - s->n_blocks) * sizeof *grown);
		s->blocks = grown;
		s->n_blocks = y + 1;
	}
	b = &s->blocks[y];
	if (row >= b->n_rows) {
		size_t old = (size_t)b->n_rows * HEAT_SIDE, n;
		struct fact_rank_step *exact;
		uint16_t *codes;

		while (want <= row)
			want *= 2;
		n = (size_t)want * HEAT_SIDE;
		codes = calloc(n * HEAT_N_METRICS, sizeof *codes);
		exact = calloc(n, sizeof *exact);
		if (!codes || !exact) {
			free(codes);
			free(exact);
			return -ENOMEM;
		}
		for (unsigned m = 0; old && m < HEAT_N_METRICS; m++)
			memcpy(codes + m * n, b->codes + m * old, old * sizeof *codes);
		if (b->exact)
			memcpy(exact, b->exact, old * sizeof *exact);
		h->n_cells += n - old;
		h->n_exact += b->exact ? n - old : n;
		free(b->codes);
		free(b->exact);
		b->codes = codes;
		b->exact = exact;
		b->n_rows = want;
		trim(h, s);
	}
	*ret = b;
	return 0;
}

int heat_put(struct heat *h, const struct fact_rank_step *v)
{
	int64_t ns[HEAT_N_METRICS] = {
		[HEAT_SELF] = v->self_ns, [HEAT_WAIT] = v->wait_ns,
		[HEAT_EXPOSED] = v->exposed_comm_ns, [HEAT_INPUT] = v->input_wait_ns,
		[HEAT_FWD] = v->fwd_ns, [HEAT_BWD] = v->bwd_ns, [HEAT_OPT] = v->opt_ns,
		[HEAT_STEP] = v->dur_ns,
	};
	uint32_t column = v->step % HEAT_SIDE, rank = (uint32_t)v->rank;
	struct block *b;
	struct span *s;
	size_t at;
	int r;

	if (v->rank < 0 || v->rank >= FACT_MAX_RANKS)
		return 0;
	s = span_open(h, v->step / HEAT_SIDE);
	if (!s)
		return -ENOMEM;
	if (s->dropped)
		return 0; /* too old to be drawn */
	r = block_open(h, s, rank, &b);
	if (r < 0)
		return r;
	at = (size_t)(rank % HEAT_SIDE) * HEAT_SIDE + column;
	if (b->exact)
		b->exact[at] = *v;
	for (unsigned m = 0; m < HEAT_N_METRICS; m++) {
		uint16_t code = wide(ns[m]);

		if (m == HEAT_WAIT && v->wait_err_ns > 0 && v->wait_ns <= v->wait_err_ns)
			code = WIDE_UNSURE;
		b->codes[(size_t)m * b->n_rows * HEAT_SIDE + at] = code;
		if (code > WIDE_FLOOR && code <= WIDE_N)
			widen_scale(h, m, (unsigned)(code - WIDE_FLOOR) / PER_OCTAVE);
	}
	s->stale[column] = true;
	s->rev = ++h->rev;
	if (!h->any || v->step < h->first_step)
		h->first_step = v->step;
	if (!h->any || v->step > h->last_step)
		h->last_step = v->step;
	if (rank + 1 > h->n_ranks)
		h->n_ranks = rank + 1;
	h->any = true;
	return 0;
}

void heat_expect(struct heat *h, uint32_t n_ranks, uint32_t first_step, uint32_t last_step)
{
	if (h->n_expected == n_ranks && h->expect_first == first_step &&
	    h->expect_last == last_step)
		return;
	h->expects = n_ranks > 0;
	h->expect_rev = ++h->rev;
	h->n_expected = n_ranks;
	h->expect_first = first_step;
	h->expect_last = last_step;
}

static int by_code(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

static bool is_value(uint16_t code)
{
	return code >= WIDE_FLOOR && code <= WIDE_N;
}

/* The middle of a step's column over all ranks. */
static int find_middle(struct heat *h, struct span *s, unsigned metric, uint32_t column)
{
	uint32_t n = 0, k;

	if (h->n_column_alloc < h->n_ranks) {
		uint16_t *grown = realloc(h->column, h->n_ranks * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		h->column = grown;
		h->n_column_alloc = h->n_ranks;
	}
	for (uint32_t y = 0; y < s->n_blocks; y++) {
		const struct block *b = &s->blocks[y];

		for (uint32_t row = 0; row < b->n_rows; row++) {
			uint16_t code = b->codes[((size_t)metric * b->n_rows + row) * HEAT_SIDE +
						 column];

			if (is_value(code))
				h->column[n++] = code;
		}
	}
	s->n_of[metric][column] = (uint16_t)(n > UINT16_MAX ? UINT16_MAX : n);
	if (n < 2)
		return 0;
	qsort(h->column, n, sizeof *h->column, by_code);
	k = n / 2;
	s->middle[metric][column][0] = h->column[k - 1];
	s->middle[metric][column][1] = h->column[k];
	s->middle[metric][column][2] = h->column[k + 1 < n ? k + 1 : k];
	return 0;
}

/* The median of the others, ns; NAN when there is nobody else. */
static double median_of_others(const struct heat *h, const struct span *s, unsigned metric,
			       uint32_t column, uint16_t code)
{
	const uint16_t *mid = s->middle[metric][column];
	unsigned n = s->n_of[metric][column];
	double a, b;

	if (n < 2)
		return NAN;
	if (n % 2 == 0) /* an odd number of others: one is in the middle */
		return h->value[code < mid[1] ? mid[1] : mid[0]];
	/* Equal codes are interchangeable, so the value tells the side well enough. */
	a = h->value[code < mid[1] ? mid[1] : mid[0]];
	b = h->value[code > mid[1] ? mid[1] : mid[2]];
	return (a + b) / 2;
}

static int fold(struct heat *h, const struct heat_key *key)
{
	uint64_t step0 = (uint64_t)key->x << (key->zs + 8), rank0 = (uint64_t)key->y << (key->zr + 8);
	uint64_t step1 = step0 + (UINT64_C(256) << key->zs), rank1 = rank0 + (UINT64_C(256) << key->zr);

	for (uint32_t i = 0; i < h->n_spans; i++) {
		struct span *s = h->spans[i];
		uint64_t base = (uint64_t)s->x * HEAT_SIDE;

		if (base + HEAT_SIDE <= step0 || base >= step1 || s->dropped)
			continue;
		for (uint32_t c = 0; c < HEAT_SIDE && key->baseline == HEAT_PEERS; c++) {
			if (!s->stale[c])
				continue;
			for (unsigned m = 0; m < HEAT_N_METRICS; m++)
				if (find_middle(h, s, m, c) < 0)
					return -ENOMEM;
			s->stale[c] = false;
		}
		for (uint32_t y = 0; y < s->n_blocks; y++) {
			const struct block *b = &s->blocks[y];

			for (uint32_t row = 0; row < b->n_rows; row++) {
				uint64_t rank = (uint64_t)y * HEAT_SIDE + row;
				const uint16_t *codes = b->codes + ((size_t)key->metric * b->n_rows + row) *
									   HEAT_SIDE;
				struct cell *line;

				if (rank < rank0 || rank >= rank1)
					continue;
				line = h->cells + ((rank - rank0) >> key->zr) * HEAT_SIDE;
				for (uint32_t c = 0; c < HEAT_SIDE; c++) {
					uint16_t code = codes[c];
					struct cell *cell;
					double v;

					if (code == WIDE_NONE || base + c < step0 || base + c >= step1)
						continue;
					cell = &line[(base + c - step0) >> key->zs];
					if (!is_value(code)) {
						unsigned char sp = code == WIDE_UNSURE ? UNSURE
										       : NOT_FINITE;
						if (cell->special != UNSURE)
							cell->special = sp;
						continue;
					}
					v = h->value[code];
					if (key->baseline == HEAT_PEERS) {
						double med = median_of_others(h, s, key->metric, c,
									      code);

						if (isnan(med)) {
							cell->special = NOT_FINITE;
							continue;
						}
						v = med > 0 ? v / med - 1 : v > 0 ? 1e9 : 0;
					}
					if (cell->n == 0 || v > cell->most)
						cell->most = v;
					if (cell->n == 0 || v < cell->least)
						cell->least = v;
					cell->sum += v;
					cell->n++;
				}
			}
		}
	}
	return 0;
}

/* Does the cell cover a rank and step that should have a value? */
static bool expected(const struct heat *h, const struct heat_key *key, unsigned row, unsigned column)
{
	uint64_t rank = (((uint64_t)key->y << 8) + row) << key->zr;
	uint64_t first = (((uint64_t)key->x << 8) + column) << key->zs;
	uint64_t last = first + (UINT64_C(1) << key->zs) - 1;

	return h->expects && rank < h->n_expected && first <= h->expect_last &&
	       last >= h->expect_first;
}

static void put_u16(unsigned char *p, unsigned v)
{
	p[0] = (unsigned char)v;
	p[1] = (unsigned char)(v >> 8);
}

static void put_u32(unsigned char *p, uint32_t v)
{
	put_u16(p, v & 0xffff);
	put_u16(p + 2, v >> 16);
}

static void put_f64(unsigned char *p, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof bits);
	put_u32(p, (uint32_t)bits);
	put_u32(p + 4, (uint32_t)(bits >> 32));
}

int heat_tile(struct heat *h, const struct heat_key *key, unsigned char out[HEAT_TILE_BYTES],
	      uint32_t *ret_rev, bool *ret_sealed)
{
	unsigned char *codes = out + HEAT_HEAD_BYTES;
	double lo = EXCESS_LO, hi = EXCESS_HI;
	uint64_t end_step;
	uint32_t histogram[10] = { 0 }, rev = 0;
	bool any = false, sealed;
	int r;

	if (key->zs > 24 || key->zr > 24 || key->metric >= HEAT_N_METRICS ||
	    key->baseline >= HEAT_N_BASELINES || key->agg >= HEAT_N_AGGS)
		return 1;
	if (key->baseline == HEAT_RAW) {
		bool empty = h->lo[key->metric] == h->hi[key->metric];

		lo = ldexp(1, h->lo[key->metric]);
		hi = ldexp(1, empty ? 1 : h->hi[key->metric]);
		rev = h->scale_rev[key->metric];
	}
	memset(h->cells, 0, HEAT_SIDE * HEAT_SIDE * sizeof *h->cells);
	r = fold(h, key);
	if (r < 0)
		return r;

	for (unsigned i = 0; i < HEAT_SIDE * HEAT_SIDE; i++) {
		const struct cell *c = &h->cells[i];
		unsigned char code = NO_DATA;

		if (c->n > 0) {
			double v = key->agg == HEAT_MAX	   ? c->most
				   : key->agg == HEAT_MEAN ? c->sum / c->n
							   : c->least;

			code = key->baseline == HEAT_PEERS ? heat_code_excess(v)
							   : heat_code_raw(v, lo, hi);
		} else if (c->special) {
			code = c->special;
		} else if (expected(h, key, i / HEAT_SIDE, i % HEAT_SIDE)) {
			code = MISSING;
		}
		codes[i] = code;
		any |= code != NO_DATA;
		if (code >= FIRST && code <= LAST)
			histogram[(code - FIRST) * 10 / (LAST - FIRST + 1)]++;
	}

	end_step = (((uint64_t)key->x + 1) << (key->zs + 8));
	for (uint32_t i = 0; i < h->n_spans; i++) {
		const struct span *s = h->spans[i];
		uint64_t base = (uint64_t)s->x * HEAT_SIDE;

		if (base < end_step && base + HEAT_SIDE > (uint64_t)key->x << (key->zs + 8) &&
		    s->rev > rev)
			rev = s->rev;
	}
	sealed = h->any && h->last_step >= end_step + HEAT_SIDE;
	if (!sealed && h->expect_rev > rev)
		rev = h->expect_rev;
	memset(out, 0, HEAT_HEAD_BYTES);
	memcpy(out, "SLHT", 4);
	put_u16(out + 4, 1);
	put_u16(out + 6, sealed);
	out[8] = (unsigned char)key->metric;
	out[9] = (unsigned char)key->baseline;
	out[10] = (unsigned char)key->agg;
	out[11] = (unsigned char)key->zs;
	out[12] = (unsigned char)key->zr;
	put_u32(out + 16, key->x);
	put_u32(out + 20, key->y);
	put_f64(out + 24, lo);
	put_f64(out + 32, hi);
	put_u32(out + 40, rev);
	for (unsigned k = 0; k < 10; k++)
		put_u16(out + 44 + 2 * k, histogram[k] > UINT16_MAX ? UINT16_MAX : histogram[k]);
	*ret_rev = rev;
	*ret_sealed = sealed;
	return any ? 0 : 1;
}

bool heat_cell(const struct heat *h, uint32_t step, int32_t rank, struct fact_rank_step *ret)
{
	const struct span *s = span_find(h, step / HEAT_SIDE);
	uint32_t y = (uint32_t)rank / HEAT_SIDE, row = (uint32_t)rank % HEAT_SIDE;
	size_t at = (size_t)row * HEAT_SIDE + step % HEAT_SIDE;
	const struct block *b;

	if (!s || rank < 0 || y >= s->n_blocks)
		return false;
	b = &s->blocks[y];
	if (row >= b->n_rows || !b->exact ||
	    b->codes[(size_t)HEAT_STEP * b->n_rows * HEAT_SIDE + at] == WIDE_NONE)
		return false;
	*ret = b->exact[at];
	return true;
}

uint32_t heat_rev(const struct heat *h)
{
	return h->rev;
}

void heat_bounds(const struct heat *h, uint32_t *ret_first_step, uint32_t *ret_last_step,
		 uint32_t *ret_n_ranks)
{
	*ret_first_step = h->first_step;
	*ret_last_step = h->last_step;
	*ret_n_ranks = h->n_ranks;
}

const char *heat_metric_name(enum heat_metric m)
{
	static const char *const names[] = { "self", "wait", "exposed", "input",
					     "fwd",  "bwd",  "opt",	"step" };

	return (unsigned)m < HEAT_N_METRICS ? names[m] : "unknown";
}

const char *heat_baseline_name(enum heat_baseline b)
{
	static const char *const names[] = { "peers", "raw" };

	return (unsigned)b < HEAT_N_BASELINES ? names[b] : "unknown";
}

const char *heat_agg_name(enum heat_agg a)
{
	static const char *const names[] = { "max", "mean", "min" };

	return (unsigned)a < HEAT_N_AGGS ? names[a] : "unknown";
}
