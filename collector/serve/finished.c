/* finished.c - a run without its collector: what that one would know, and its picture.
 *
 * One read transaction, so that all of it is of one moment. Somebody may still write
 * the file: query_changed() says when it is time to load again.
 */
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

static int load_live(struct reader *rd, const struct params *p, struct serve_live *ret,
		     char why[160])
{
	sqlite3_stmt *q;
	int r = query_row(rd, sql_serve_snapshot, p, &q, why);

	if (r != 0)
		return r;
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
		.n_hosts_by_stream = (uint32_t)sqlite3_column_int64(q, 11),
	};
	sqlite3_reset(q);
	return 0;
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

static int load_heat(struct reader *rd, const struct params *p, struct heat *heat, char why[160])
{
	uint32_t first = UINT32_MAX, last = 0, n_ranks = 0;
	sqlite3_stmt *q;
	int rc, r = query_start(rd, sql_serve_heat, p, &q, why);

	if (r != 0)
		return r;
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
	return r;
}

static int load_told(struct reader *rd, const struct params *p, char **ret, char why[160])
{
	json_t *told;
	int r = query_told(rd, p, true, &told, why);

	if (r != 0)
		return r;
	*ret = json_dumps(told, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(told);
	return *ret ? 0 : -ENOMEM;
}

static int data_version(struct reader *rd, int64_t *ret, char why[160])
{
	static const struct route_request none = { 0 };
	struct params p = { &none, 0 };

	return query_count(rd, "PRAGMA data_version", &p, ret, why);
}

int query_load(struct query *pool, struct serve_live *ret, char **ret_told, struct heat *heat,
	       char why[160])
{
	static const struct route_request none = { 0 };
	struct params p = { &none, 0 };
	struct reader *rd;
	int64_t version;
	int rc, r = 0;

	if (pool->watch && query_reader_stale(pool->watch)) {
		query_drop_reader(pool->watch);
		pool->watch = NULL;
	}
	if (!pool->watch)
		r = query_take_reader(pool, &pool->watch, why);
	if (r != 0)
		return r;
	rd = pool->watch;
	rc = sqlite3_exec(rd->db, "BEGIN", NULL, NULL, NULL);
	r = rc == SQLITE_OK ? load_live(rd, &p, ret, why) : query_fail(rd, rc, why);
	if (r == 0)
		r = data_version(rd, &version, why); /* of the transaction, which has begun now */
	if (r == 0)
		r = load_told(rd, &p, ret_told, why);
	if (r == 0)
		r = load_heat(rd, &p, heat, why);
	if (!sqlite3_get_autocommit(rd->db))
		sqlite3_exec(rd->db, "ROLLBACK", NULL, NULL, NULL);
	if (r == 0) {
		pool->version = version;
	} else {
		query_drop_reader(rd);
		pool->watch = NULL;
	}
	return r;
}

bool query_changed(struct query *pool)
{
	int64_t version;
	char why[160];

	return !pool->watch || query_reader_stale(pool->watch) ||
	       data_version(pool->watch, &version, why) != 0 || version != pool->version;
}
