/* finished.c - a finished run: what the live collector would know, and its picture. */
#include "query_internal.h"

#include "sql.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int query_check(struct query *pool, char why[160])
{
	static const struct route_request none = { 0 };
	struct params p = { &none, 0 };
	json_t *run = NULL;
	struct reader *rd;
	int r = query_take_reader(pool, &rd, why);

	if (r != 0)
		return r;
	r = query_one(rd, sql_serve_run, &p, &run, why);
	json_decref(run);
	query_give_reader(pool, rd);
	return r == QUERY_NONE ? 0 : r;
}

static int64_t time_or_none(sqlite3_stmt *q, int col)
{
	return sqlite3_column_type(q, col) == SQLITE_NULL ? FACT_NONE : sqlite3_column_int64(q, col);
}

int query_snapshot(struct query *pool, struct serve_live *ret, char why[160])
{
	static const struct route_request none = { 0 };
	struct params p = { &none, 0 };
	struct reader *rd;
	sqlite3_stmt *q;
	int r = query_take_reader(pool, &rd, why);

	if (r != 0)
		return r;
	r = query_row(rd, sql_serve_snapshot, &p, &q, why);
	if (r != 0)
		goto out;
	*ret = (struct serve_live){
		.now_ns = time_or_none(q, 0), .last_event_ns = time_or_none(q, 0),
		.n_agents = (uint32_t)sqlite3_column_int64(q, 1),
		.n_ranks = (uint32_t)sqlite3_column_int64(q, 2),
		.n_ranks_seen = (uint32_t)sqlite3_column_int64(q, 2),
		.n_ranks_expected = (uint32_t)sqlite3_column_int64(q, 3),
		.n_events = (uint64_t)sqlite3_column_int64(q, 4),
		.n_drops = (uint64_t)sqlite3_column_int64(q, 5),
		.n_events_lost = (uint64_t)sqlite3_column_int64(q, 6),
		.n_hosts = (uint32_t)sqlite3_column_int64(q, 7),
		.n_hosts_unaligned = (uint32_t)sqlite3_column_int64(q, 8),
		.clock_error_ns = time_or_none(q, 9), .ended = true,
		.agent_cpu_ratio = sqlite3_column_type(q, 10) == SQLITE_NULL
					   ? NAN : sqlite3_column_double(q, 10),
	};
	sqlite3_reset(q);
out:
	query_give_reader(pool, rd);
	return r;
}

/* The first picture sorts every step of every metric, a second and more at 10,000
 * ranks: better here than on the loop. */
static int warm(struct heat *heat)
{
	struct heat_key all = { .zs = ROUTE_MAX_ZOOM, .zr = ROUTE_MAX_ZOOM, .baseline = HEAT_PEERS };
	unsigned char *tile = malloc(HEAT_TILE_BYTES);
	uint32_t rev;
	bool sealed;
	int r = tile ? heat_tile(heat, &all, tile, &rev, &sealed) : -ENOMEM;

	free(tile);
	return r < 0 ? r : 0;
}

int query_heat(struct query *pool, struct heat *heat, char why[160])
{
	static const struct route_request none = { 0 };
	struct params p = { &none, 0 };
	uint32_t first = UINT32_MAX, last = 0, n_ranks = 0;
	struct reader *rd;
	sqlite3_stmt *q;
	int rc, r = query_take_reader(pool, &rd, why);

	if (r != 0)
		return r;
	r = query_start(rd, sql_serve_heat, &p, &q, why);
	if (r != 0)
		goto out;
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		int64_t step = sqlite3_column_int64(q, 0), rank = sqlite3_column_int64(q, 1);
		struct fact_rank_step v = {
			.step = (uint32_t)step, .rank = (int32_t)rank,
			.begin_ns = time_or_none(q, 2), .begin_err_ns = time_or_none(q, 3),
			.dur_ns = time_or_none(q, 4), .self_ns = time_or_none(q, 5),
			.exposed_comm_ns = time_or_none(q, 6), .wait_ns = time_or_none(q, 7),
			.wait_err_ns = time_or_none(q, 8), .input_wait_ns = time_or_none(q, 9),
			.fwd_ns = time_or_none(q, 10), .bwd_ns = time_or_none(q, 11),
			.opt_ns = time_or_none(q, 12), .eval_ns = time_or_none(q, 13),
			.excess_ratio = sqlite3_column_type(q, 14) == SQLITE_NULL
						? NAN : sqlite3_column_double(q, 14),
			.n_peers = (uint32_t)sqlite3_column_int64(q, 15),
			.coverage = sqlite3_column_double(q, 16),
		};

		/* A file may say anything; the heat believes what it is given. */
		if (step < 0 || step >= UINT32_MAX || rank < 0 || rank >= FACT_MAX_RANKS)
			continue;
		r = heat_put(heat, &v);
		if (r != 0)
			break;
		first = v.step < first ? v.step : first;
		last = v.step > last ? v.step : last;
		n_ranks = (uint32_t)rank + 1 > n_ranks ? (uint32_t)rank + 1 : n_ranks;
	}
	if (r == 0 && rc != SQLITE_DONE)
		r = query_fail(rd, rc, why);
	sqlite3_reset(q);
	if (r == 0 && n_ranks > 0) {
		heat_expect(heat, n_ranks, first, last);
		r = warm(heat);
	}
out:
	query_give_reader(pool, rd);
	return r;
}
