/* heat.h - rank x step pictures as blocks of one-byte codes.
 *
 * Filled from rank-step facts, never by a scan of event rows. A block is 256
 * ranks x 256 steps of u16 log codes in memory while it is open, and a tile of
 * one byte a cell on the way to the page. Both axes roll up independently:
 * zs and zr are powers of two of steps and ranks a cell. Rolled cells keep max
 * and mean; what is judged by the smallest value (wait, coverage) rolls up by
 * min. Codes: 0 no data, 1 expected but missing, 2 below range, 3..251 value,
 * 252 above range, 253 within clock error, 254 not finite.
 */
#pragma once

#include "facts.h"

#define HEAT_SIDE 256
#define HEAT_HEAD_BYTES 64
#define HEAT_TILE_BYTES (HEAT_HEAD_BYTES + HEAT_SIDE * HEAT_SIDE)

enum heat_metric { HEAT_SELF, HEAT_WAIT, HEAT_EXPOSED, HEAT_INPUT, HEAT_FWD, HEAT_BWD, HEAT_OPT,
		   HEAT_STEP, HEAT_N_METRICS };
enum heat_baseline { HEAT_PEERS, HEAT_RAW, HEAT_N_BASELINES };
enum heat_agg { HEAT_MAX, HEAT_MEAN, HEAT_MIN, HEAT_N_AGGS };

/* Code <-> value. Excess (peers): code = 3 + K (asinh(ratio / A) - asinh(-0.5 / A))
 * with K = A / 0.0025 (0.25 % a code near zero) and A such that -50 % is 3 and
 * +400 % is 251; beyond them 2 and 252. Raw: logarithmic, lo ns is 3, hi ns is 251. */
unsigned char heat_code_excess(double ratio);
double heat_excess_of_code(unsigned char code);
unsigned char heat_code_raw(double v_ns, double lo_ns, double hi_ns);
double heat_raw_of_code(unsigned char code, double lo_ns, double hi_ns);

/* Memory is bounded: past HEAT_MAX_CELLS rank-steps the oldest 256 steps go (their
 * rows are in the store), exact values are kept for the newest HEAT_MAX_EXACT. */
#define HEAT_MAX_CELLS (16u << 20)
#define HEAT_MAX_EXACT (256u << 10)

struct heat;
int heat_new(struct heat **ret);
void heat_free(struct heat *h);
/* One cell of every metric; a repeat replaces. */
int heat_put(struct heat *h, const struct fact_rank_step *v);
/* A rank is expected from this step on (missing cells become code 1). */
void heat_expect(struct heat *h, uint32_t n_ranks, uint32_t first_step, uint32_t last_step);

struct heat_key {
	enum heat_metric metric;
	enum heat_baseline baseline;
	enum heat_agg agg;
	unsigned zs, zr;    /* 0..24: 2^z steps / ranks a cell */
	uint32_t x, y;      /* tile column (steps) and row (ranks) */
};

/* Render one tile: 64-byte header then 256 rows (ranks) x 256 columns (steps).
 * Header, little endian: "SLHT", u16 version 1, u16 flags (1 = sealed), u8
 * metric, baseline, agg, zs; u8 zr, 3 x 0; u32 x, y; f64 lo, hi (raw scale, ns;
 * excess: -0.5, 4.0); u32 rev; then the histogram of the codes 3..251 in ten equal
 * parts, 10 x u16 that stop at 65535. Peers: each rank against the median of the
 * others in the same step, for every metric. Returns 0, 1 when there is no data at all in it, -ENOMEM. */
int heat_tile(struct heat *h, const struct heat_key *key, unsigned char out[HEAT_TILE_BYTES],
	      uint32_t *ret_rev, bool *ret_sealed);

/* The exact value behind a cell (zs = zr = 0): false when there is none, or no
 * longer: then ask the store. */
bool heat_cell(const struct heat *h, uint32_t step, int32_t rank, struct fact_rank_step *ret);

uint32_t heat_rev(const struct heat *h); /* grows with every change */
void heat_bounds(const struct heat *h, uint32_t *ret_first_step, uint32_t *ret_last_step,
		 uint32_t *ret_n_ranks);

/* Reads sealed blocks back after a restart (called by store's loader, a row of
 * rank_step at a time through heat_put). */
const char *heat_metric_name(enum heat_metric m);
const char *heat_baseline_name(enum heat_baseline b);
const char *heat_agg_name(enum heat_agg a);
