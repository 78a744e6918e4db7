/* read.c - what a restart needs, from the tables to the caller's functions. */
#include "internal.h"

#include "sql.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t col_int(sqlite3_stmt *q, int i)
{
	return sqlite3_column_int64(q, i);
}
static int64_t col_int_or(sqlite3_stmt *q, int i, int64_t unknown)
{
	return sqlite3_column_type(q, i) == SQLITE_NULL ? unknown : sqlite3_column_int64(q, i);
}
static double col_real(sqlite3_stmt *q, int i)
{
	return sqlite3_column_type(q, i) == SQLITE_NULL ? NAN : sqlite3_column_double(q, i);
}
static const char *col_text(sqlite3_stmt *q, int i)
{
	const unsigned char *t = sqlite3_column_text(q, i);

	return t ? (const char *)t : "";
}
static void copy_text(char *out, size_t n_out, const char *text)
{
	snprintf(out, n_out, "%s", text);
}

struct reading {
	const struct store_reader_fns *fns;
	void *arg;
};

static int read_host(const struct reading *r, sqlite3_stmt *q)
{
	struct row_host v = {
		.host = (uint32_t)col_int(q, 0),
		.name = col_text(q, 1),
		.boot_id = col_text(q, 2),
		.time_ns_inode = (uint64_t)col_int(q, 3),
		.same_clock = col_int(q, 4) != 0,
		.offset_ns = col_int(q, 5),
	};

	return r->fns->host(r->arg, &v);
}

static int read_agent(const struct reading *r, sqlite3_stmt *q)
{
	struct row_agent v = { .agent = (uint32_t)col_int(q, 0) };

	if (sqlite3_column_bytes(q, 1) != sizeof v.agent_id)
		return STORE_DAMAGED;
	memcpy(v.agent_id, sqlite3_column_blob(q, 1), sizeof v.agent_id);
	v.host = (uint32_t)col_int(q, 2);
	v.version = col_text(q, 3);
	v.seen_ns = col_int(q, 4);
	v.n_given_up = (uint64_t)col_int(q, 5);
	v.cpu_ns = (uint64_t)col_int(q, 6);
	v.rss_bytes = (uint64_t)col_int(q, 7);
	return r->fns->agent(r->arg, &v);
}

static int read_batches(const struct reading *r, sqlite3_stmt *q)
{
	uint32_t agent = (uint32_t)col_int(q, 0);
	uint64_t lo = (uint64_t)col_int(q, 1), hi = (uint64_t)col_int(q, 2);

	return r->fns->batches(r->arg, agent, lo, hi);
}

static enum row_state state_of(const char *name)
{
	return strcmp(name, "left") == 0 ? ROW_LEFT :
	       strcmp(name, "died") == 0 ? ROW_DIED :
					   ROW_ALIVE;
}

static int read_process(const struct reading *r, sqlite3_stmt *q)
{
	struct row_process v = {
		.process = (uint32_t)col_int(q, 0),
		.host = (uint32_t)col_int(q, 1),
		.agent = (uint32_t)col_int(q, 2),
		.unique = (uint64_t)col_int(q, 3),
		.pid = (uint32_t)col_int(q, 4),
		.rank = (int32_t)col_int_or(q, 5, -1),
		.local_rank = (int32_t)col_int_or(q, 6, -1),
		.world_size = (int32_t)col_int(q, 7),
		.restart_count = (int32_t)col_int(q, 8),
		.host_started_ns = col_int(q, 9),
		.tick_source = (uint32_t)col_int(q, 10),
		.tick_error_ns = (uint32_t)col_int(q, 11),
		.state = state_of(col_text(q, 12)),
		.state_at_ns = col_int(q, 13),
		.exit_code = (int32_t)col_int_or(q, 14, -1),
		.signal = (int32_t)col_int_or(q, 15, -1),
		.n_dropped = (uint64_t)col_int(q, 16),
		.n_text_dropped = (uint64_t)col_int(q, 17),
		.n_names_dropped = (uint64_t)col_int(q, 18),
		.n_gap = (uint64_t)col_int(q, 19),
	};

	return r->fns->process(r->arg, &v);
}

static int read_ring(const struct reading *r, sqlite3_stmt *q)
{
	struct row_ring v = {
		.process = (uint32_t)col_int(q, 0),
		.ring = (uint32_t)col_int(q, 1),
		.lo = (uint64_t)col_int(q, 2),
		.hi = (uint64_t)col_int(q, 3),
	};

	return r->fns->ring(r->arg, &v);
}

static int read_name(const struct reading *r, sqlite3_stmt *q)
{
	struct row_name v = {
		.process = (uint32_t)col_int(q, 0),
		.id = (uint32_t)col_int(q, 1),
		.text = col_text(q, 2),
	};

	return r->fns->name(r->arg, &v);
}

static int read_exchange(const struct reading *r, sqlite3_stmt *q)
{
	struct row_exchange v = {
		.host = (uint32_t)col_int(q, 0),
		.t0_ns = col_int(q, 1),
		.t1_ns = col_int(q, 2),
		.t2_ns = col_int(q, 3),
		.t3_ns = col_int(q, 4),
	};

	return r->fns->exchange(r->arg, &v);
}

static int read_snapshot(const struct reading *r, sqlite3_stmt *q)
{
	struct row_snapshot v = {
		.host = (uint32_t)col_int(q, 0),
		.host_ns = col_int(q, 1),
		.half_ns = col_int(q, 2),
		.mono_ns = col_int(q, 3),
		.real_ns = col_int(q, 4),
		.boot_ns = col_int(q, 5),
		.tick_source = (uint32_t)col_int_or(q, 6, UINT32_MAX),
		.tick = (uint64_t)col_int(q, 7),
	};

	return r->fns->snapshot(r->arg, &v);
}

static int read_rank_step(const struct reading *r, sqlite3_stmt *q)
{
	struct fact_rank_step v = {
		.step = (uint32_t)col_int(q, 0),
		.rank = (int32_t)col_int(q, 1),
		.begin_ns = col_int(q, 2),
		.begin_err_ns = col_int(q, 3),
		.dur_ns = col_int(q, 4),
		.self_ns = col_int_or(q, 5, FACT_NONE),
		.exposed_comm_ns = col_int_or(q, 6, FACT_NONE),
		.wait_ns = col_int_or(q, 7, FACT_NONE),
		.wait_err_ns = col_int_or(q, 8, FACT_NONE),
		.input_wait_ns = col_int_or(q, 9, FACT_NONE),
		.fwd_ns = col_int_or(q, 10, FACT_NONE),
		.bwd_ns = col_int_or(q, 11, FACT_NONE),
		.opt_ns = col_int_or(q, 12, FACT_NONE),
		.eval_ns = col_int_or(q, 13, FACT_NONE),
		.excess_ratio = col_real(q, 14),
		.n_peers = (uint32_t)col_int(q, 15),
		.coverage = col_real(q, 16),
		.dur_err_ns = col_int(q, 17),
		.compute_ns = col_int_or(q, 18, FACT_NONE),
		.idle_ns = col_int_or(q, 19, FACT_NONE),
		.host_ns = col_int_or(q, 20, FACT_NONE),
	};

	return r->fns->rank_step(r->arg, &v);
}

static int read_chunk(const struct reading *r, sqlite3_stmt *q)
{
	struct row_chunk v = {
		.chunk = (uint64_t)col_int(q, 0),
		.process = (uint32_t)col_int(q, 1),
		.ring = (uint32_t)col_int(q, 2),
		.first = (uint64_t)col_int(q, 3),
	};

	v.data = sqlite3_column_blob(q, 4);
	v.n_bytes = (size_t)sqlite3_column_bytes(q, 4);
	return r->fns->chunk(r->arg, &v);
}

static int each(struct store *s, const struct reading *rd, const char *sql,
		int (*read)(const struct reading *, sqlite3_stmt *), const int64_t *param)
{
	sqlite3_stmt *q;
	int r = store_prepare(s->db, sql, param ? 1 : 0, &q), rc;

	if (r != 0)
		return r;
	if (param)
		sqlite3_bind_int64(q, 1, *param);
	while ((rc = sqlite3_step(q)) == SQLITE_ROW && r == 0)
		r = read(rd, q);
	if (r == 0)
		r = store_outcome_of(s->db, rc);
	sqlite3_finalize(q);
	return r;
}

static int read_run(const struct reading *r, sqlite3_stmt *q)
{
	struct row_run *v = r->arg;

	v->set = true;
	copy_text(v->run_id, sizeof v->run_id, col_text(q, 0));
	v->world_size = (int32_t)col_int(q, 2);
	v->started_ns = col_int(q, 3);
	v->ended_ns = col_int_or(q, 4, FACT_NONE);
	v->fleet_minus_raw_ns = col_int(q, 5);
	copy_text(v->boot_id, sizeof v->boot_id, col_text(q, 6));
	v->time_ns_inode = (uint64_t)col_int(q, 7);
	return 0;
}

int store_head(struct store *s, struct store_head *ret)
{
	struct reading rd = { NULL, &ret->run };
	sqlite3_stmt *q;
	int r;

	*ret = (struct store_head){ 0 };
	r = each(s, &rd, sql_store_load_run, read_run, NULL);
	if (r != 0)
		return r;
	r = store_prepare(s->db, sql_store_load_counters, 0, &q);
	if (r != 0)
		return r;
	r = store_outcome_of(s->db, sqlite3_step(q));
	ret->last_chunk = (uint64_t)sqlite3_column_int64(q, 0);
	ret->low_water = (uint64_t)sqlite3_column_int64(q, 1);
	sqlite3_finalize(q);
	return r;
}

static int read_core_state(struct store *s, const struct store_reader_fns *fns, void *arg)
{
	sqlite3_stmt *q;
	int r = store_prepare(s->db, sql_store_load_meta, 1, &q);

	if (r != 0)
		return r;
	sqlite3_bind_text(q, 1, "core", -1, SQLITE_STATIC);
	r = sqlite3_step(q);
	if (r == SQLITE_ROW)
		r = fns->core_state(arg, sqlite3_column_blob(q, 0),
				    (size_t)sqlite3_column_bytes(q, 0));
	else
		r = store_outcome_of(s->db, r);
	sqlite3_finalize(q);
	return r;
}

int store_read(struct store *s, const struct store_reader_fns *fns, void *arg)
{
	struct reading rd = { fns, arg };
	struct store_head head;
	int64_t low_water;
	int r;

	r = store_head(s, &head);
	if (r != 0)
		return r;
	low_water = (int64_t)head.low_water;
#define READ(name, sql, param)                                                                 \
	if (r == 0 && fns->name)                                                               \
		r = each(s, &rd, sql_store_load_##sql, read_##name, param);
	if (r == 0 && fns->core_state)
		r = read_core_state(s, fns, arg);
	READ(rank_step, rank_steps, NULL)
	READ(host, hosts, NULL)
	READ(agent, agents, NULL)
	READ(batches, batches, NULL)
	READ(process, processes, NULL)
	READ(ring, rings, NULL)
	READ(name, names, NULL)
	READ(exchange, exchanges, NULL)
	READ(snapshot, snapshots, NULL)
	READ(chunk, chunks, &low_water)
#undef READ
	return r;
}
