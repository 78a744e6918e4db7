#include "unit.h"

#include "../../collector/ranges.h"
#include "../../collector/store/store.h"
#include "../../proto/chunk.h"
#include "fault_vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96];

static int each_test(void **state)
{
	(void)state;
	/* The sweeps sync thousands of times: in memory that is quick. */
	strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/syncline-store-XXXXXX" :
							 "/tmp/syncline-store-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/a.db", folder);
	fault_plan(-1, false, 0);
	return 0;
}

static int after_test(void **state)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	char name[128];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
		unlink(name);
	}
	rmdir(folder);
	return 0;
}

static struct store *open_new(void)
{
	struct store *s;

	assert_int_equal(store_open(&s, &(struct store_config){ .path = path }), 0);
	return s;
}

static int64_t query(const char *sql)
{
	sqlite3_stmt *q;
	sqlite3 *db;
	int64_t v;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
					 NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	v = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : -1;
	sqlite3_finalize(q);
	sqlite3_close(db);
	return v;
}

static size_t encode(unsigned char *out, uint16_t kind, uint64_t t0, size_t n)
{
	struct event ev[64];

	for (size_t i = 0; i < n; i++)
		ev[i] = (struct event){ .tick = t0 + i, .kind = kind, .b = i };
	return chunk_encode(ev, n, out);
}

static struct store_job *full_job(void)
{
	static unsigned char chunk[CHUNK_MAX_BYTES(64)];
	struct store_job *j = job_new();
	struct facts *f = &j->facts;

	j->run = (struct row_run){ .set = true, .run_id = "r1", .world_size = 2, .started_ns = 5,
				   .ended_ns = FACT_NONE, .fleet_minus_raw_ns = 77, .boot_id = "boot",
				   .time_ns_inode = 9 };
	*JOB_PUSH(j, hosts) = (struct row_host){ 0, "h", "boot", 9, true, 77 };
	*JOB_PUSH(j, agents) = (struct row_agent){ .version = "v", .seen_ns = 8 };
	*JOB_PUSH(j, processes) = (struct row_process){ .unique = UINT64_MAX - 1, .rank = 1, .pid = 4,
							.local_rank = -1, .exit_code = -1, .signal = 9,
							.state = ROW_DIED, .n_gap = 3 };
	*JOB_PUSH(j, names) = (struct row_name){ 0, 1, "world" };
	*JOB_PUSH(j, chunks) = (struct row_chunk){ .chunk = 1, .first = 10, .kinds = UINT64_C(1) << 63,
						   .n_events = 20, .t_min_ns = 100, .t_max_ns = 119,
						   .data = chunk,
						   .n_bytes = encode(chunk, EVENT_MARK, 100, 20) };
	*JOB_PUSH(j, rings) = (struct row_ring){ 0, 0, 10, 30, false };
	*JOB_PUSH(j, batches) = (struct row_batch){ 0, 1 };
	*JOB_PUSH(j, exchanges) = (struct row_exchange){ 0, 1, 2, 3, 4, ROW_WAY_UDP };
	*JOB_PUSH(j, snapshots) = (struct row_snapshot){ 0, 90, 1, 2, 3, 4, UINT32_MAX, 0 };
	*JOB_PUSH(j, snapshots) = (struct row_snapshot){ 0, 91, 1, 2, 3, 4, 1, UINT64_MAX };
	*JOB_PUSH(j, clock_steps) = (struct row_clock_step){ 0, 90, 91, "wall", -5, 1 };
	*JOB_PUSH(j, peer_exchanges) = (struct row_peer_exchange){ 0, 0, 1, 2, 3, 4, 5, FACT_NONE, FACT_NONE, true };
	*JOB_PUSH(j, clock_paths) = (struct row_clock_path){ .way = ROW_WAY_UDP_KERNEL, .why = "" };
	*JOB_PUSH(j, logs) = (struct row_log){ 1, 2, 0, 1, "log", 20, "a.b", "text" };
	*JOB_PUSH(j, records) = (struct row_record){ 1, 0, 1, "meta.env", "{}" };
	*JOB_PUSH(j, envs) = (struct row_env){ 0, 1, "K", "v" };
	*JOB_PUSH(j, gauges) = (struct row_gauge){ 1, 0, -1, "cpu", 0.5 };
	*FACTS_PUSH(f, steps) = (struct fact_step){ 3, 100, 50, 2, 2, -1, true };
	*FACTS_PUSH(f, rank_steps) = (struct fact_rank_step){
		.step = 3, .rank = 1, .begin_ns = 100, .dur_ns = 50, .self_ns = 40,
		.eval_ns = FACT_NONE, .excess_ratio = NAN, .n_peers = 1, .coverage = 0.5, .dur_err_ns = 6,
		.compute_ns = 30, .idle_ns = 10, .host_ns = FACT_NONE
	};
	*FACTS_PUSH(f, groups) = (struct fact_group){ 0, "world", true, "[0,1]" };
	*FACTS_PUSH(f, arrivals) = (struct fact_arrival){ 0, 1000, 1500, 3 };
	*FACTS_PUSH(f, arrivals) = (struct fact_arrival){ 1, 1200, FACT_NONE, 4 };
	*FACTS_PUSH(f, collectives) = (struct fact_collective){
		.seq = 7, .op = OP_ALL_REDUCE, .dtype = DTYPE_F32, .bytes = 4, .step = 3,
		.first_arrival_ns = 1000, .last_arrival_ns = 1200, .end_ns = FACT_NONE, .skew_ns = 200,
		.skew_err_ns = 7, .last_rank = 1, .decided = true, .n_expected = 2, .n_seen = 2
	};
	*FACTS_PUSH(f, buckets) = (struct fact_bucket){ .step = 3, .rank = 1, .ready_ns = 5,
							.submitted_ns = FACT_NONE };
	*FACTS_PUSH(f, verdicts) = (struct fact_verdict){
		.key = "k", .class_name = "slow.fixed_rank", .severity = SEVERITY_SLOW,
		.confidence = CONFIDENCE_CERTAIN, .error_kind = ERROR_KIND_HARD, .culprit_json = "{}",
		.sentence = "Rank 1 is slow.", .evidence_json = "[]", .rules_out_json = "[]",
		.coverage_json = "{}", .first_step = 3, .last_step = EVENT_STEP_UNKNOWN
	};
	*FACTS_PUSH(f, clocks) = (struct fact_clock){ 0, 1, 77, 5, 9, "good", 3, 1.5, "anchored" };
	*FACTS_PUSH(f, contradictions) = (struct fact_contradiction){ 0, 7, 0, 0, 5, 900, "probes", FACT_NONE };
	*FACTS_PUSH(f, contradictions) = (struct fact_contradiction){ 0, 7, 0, 0, 5, 900, "probes", 12 };
	*FACTS_PUSH(f, pairs) = (struct fact_pair){ 0, 0, 9, -38, 40, 180, FACT_NONE, "exits" };
	*FACTS_PUSH(f, stages) = (struct fact_stage){ .step = 3, .rank = 1, .stage = 1, .n_stages = 2,
						      .n_micro = 4, .work_ns = 60, .collective_ns = 10,
						      .step_ns = 100, .theory_ratio = 0.2 };
	*JOB_PUSH(j, core_state) = 0xab;
	j->low_water = 1;
	return j;
}

/* --- round trip ---------------------------------------------------------- */

struct seen {
	unsigned hosts, agents, batches, processes, rings, names, exchanges, rank_steps, chunks, cores;
};

static int see_core(void *arg, const unsigned char *v, size_t n)
{
	struct seen *s = arg;

	assert_int_equal(n, 1);
	assert_int_equal(*v, 0xab);
	s->cores++;
	return 0;
}
static int see_host(void *arg, const struct row_host *v)
{
	struct seen *s = arg;

	assert_string_equal(v->name, "h");
	assert_string_equal(v->boot_id, "boot");
	assert_true(v->same_clock);
	assert_int_equal(v->offset_ns, 77);
	s->hosts++;
	return 0;
}
static int see_agent(void *arg, const struct row_agent *v)
{
	struct seen *s = arg;

	assert_int_equal(v->seen_ns, 8);
	s->agents++;
	return 0;
}
static int see_batches(void *arg, uint32_t agent, uint64_t lo, uint64_t hi)
{
	struct seen *s = arg;

	assert_int_equal(agent, 0);
	assert_int_equal(lo, 1);
	assert_int_equal(hi, 2);
	s->batches++;
	return 0;
}
static int see_process(void *arg, const struct row_process *v)
{
	struct seen *s = arg;

	assert_true(v->unique == UINT64_MAX - 1);
	assert_int_equal(v->rank, 1);
	assert_int_equal(v->local_rank, -1);
	assert_int_equal(v->exit_code, -1);
	assert_int_equal(v->signal, 9);
	assert_int_equal(v->state, ROW_DIED);
	assert_int_equal(v->n_gap, 3);
	s->processes++;
	return 0;
}
static int see_ring(void *arg, const struct row_ring *v)
{
	struct seen *s = arg;

	assert_int_equal(v->lo, 10);
	assert_int_equal(v->hi, 30);
	s->rings++;
	return 0;
}
static int see_name(void *arg, const struct row_name *v)
{
	struct seen *s = arg;

	assert_string_equal(v->text, "world");
	s->names++;
	return 0;
}
static int see_exchange(void *arg, const struct row_exchange *v)
{
	struct seen *s = arg;

	assert_int_equal(v->t0_ns, 1);
	assert_int_equal(v->t3_ns, 4);
	s->exchanges++;
	return 0;
}
static int see_snapshot(void *arg, const struct row_snapshot *v)
{
	(void)arg;
	assert_int_equal(v->host_ns, 91);
	assert_int_equal(v->tick_source, 1);
	assert_true(v->tick == UINT64_MAX);
	return 0;
}
static int see_rank_step(void *arg, const struct fact_rank_step *v)
{
	struct seen *s = arg;

	assert_int_equal(v->step, 3);
	assert_int_equal(v->self_ns, 40);
	assert_true(v->eval_ns == FACT_NONE);
	assert_true(isnan(v->excess_ratio));
	assert_int_equal(v->dur_err_ns, 6);
	assert_int_equal(v->compute_ns, 30);
	assert_int_equal(v->idle_ns, 10);
	assert_true(v->host_ns == FACT_NONE);
	s->rank_steps++;
	return 0;
}
static int see_chunk(void *arg, const struct row_chunk *v)
{
	struct seen *s = arg;
	struct event ev[64];
	size_t n;

	assert_int_equal(v->chunk, 1);
	assert_int_equal(v->first, 10);
	assert_int_equal(chunk_decode(v->data, v->n_bytes, ev, 64, &n), CHUNK_OK);
	assert_int_equal(n, 20);
	s->chunks++;
	return 0;
}

static const struct store_reader_fns see_all = {
	see_core, see_rank_step, see_host, see_agent, see_batches, see_process, see_ring, see_name,
	see_exchange, see_snapshot, see_chunk
};

static void test_what_is_written_is_read_back_after_a_restart(void **state)
{
	struct store *s = open_new();
	struct store_job *j = full_job();
	struct seen seen = { 0 };
	struct store_head head;

	(void)state;
	assert_int_equal(store_write(s, j), 0);
	assert_int_equal(j->verdict_ids.n, 1);
	assert_int_equal(j->verdict_ids.v[0], 1);
	store_close(s);
	s = open_new();
	assert_int_equal(store_head(s, &head), 0);
	assert_true(head.run.set);
	assert_string_equal(head.run.run_id, "r1");
	assert_true(head.run.ended_ns == FACT_NONE);
	assert_int_equal(head.low_water, 1);
	assert_int_equal(head.last_chunk, 1);
	assert_int_equal(store_read(s, &see_all, &seen), 0);
	assert_memory_equal(&seen, (&(struct seen){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }), sizeof seen);
	store_close(s);
	job_free(j);
}

static void test_late_events_are_a_drop_count_of_their_own(void **state)
{
	struct store *s = open_new();
	struct store_job *j = job_new();

	(void)state;
	assert_int_equal(store_write(s, j), 0);
	assert_int_equal(query("SELECT count(*) FROM drop_count WHERE place = 'late'"), 0);
	j->n_late = 3;
	assert_int_equal(store_write(s, j), 0);
	assert_int_equal(query("SELECT n FROM drop_count WHERE place = 'late'"), 3);
	store_close(s);
	job_free(j);
}

static void test_views_open_what_is_stored_in_rows_behind_them(void **state)
{
	struct store *s = open_new();
	struct store_job *j = full_job();

	(void)state;
	assert_int_equal(store_write(s, j), 0);
	store_close(s);
	job_free(j);
	assert_int_equal(query("SELECT count(*) FROM collective_rank"), 2);
	assert_int_equal(query("SELECT arrival_ns FROM collective_rank WHERE rank = 1"), 1200);
	assert_int_equal(query("SELECT dur_ns FROM collective_rank WHERE rank = 0"), 500);
	assert_int_equal(query("SELECT dur_ns IS NULL FROM collective_rank WHERE rank = 1"), 1);
	assert_int_equal(query("SELECT count(*) FROM collective WHERE op = 'all_reduce' AND end_ns IS NULL"),
			 1);
	assert_int_equal(query("SELECT excess_ratio IS NULL AND eval_ns IS NULL FROM rank_step"), 1);
	assert_int_equal(query("SELECT last_step IS NULL FROM finding WHERE severity = 'slow'"), 1);
	assert_int_equal(query("SELECT slowest_rank IS NULL FROM step"), 1);
	assert_int_equal(query("SELECT lifted_ns FROM clock_contradiction WHERE \"group\" = 'world' AND seq = 7 "
			       "AND early_host = 'h' AND impossible_ns = 900 AND against = 'probes'"),
			 12);
	assert_int_equal(query("SELECT correction_ns FROM clock_pair WHERE host = 'h' AND width_ns = 40 "
			       "AND probe_width_ns = 180 AND correction_soft_ns IS NULL AND basis = 'exits'"),
			 -38);
	assert_int_equal(query("SELECT idle_ns FROM stage_step WHERE step = 3 AND rank = 1 AND stage = 1"), 30);
}

static void test_telling_everything_twice_changes_nothing(void **state)
{
	struct store *s = open_new();
	struct store_job *j = full_job();

	(void)state;
	assert_int_equal(store_write(s, j), 0);
	/* Chunks, logs, records and gauges are news each time; the rest has keys. */
	j->chunks.n = j->logs.n = j->records.n = j->gauges.n = 0;
	assert_int_equal(store_write(s, j), 0);
	store_close(s);
	job_free(j);
	assert_int_equal(query("SELECT (SELECT count(*) FROM raw_batch) + (SELECT count(*) FROM raw_name) + "
			       "(SELECT count(*) FROM raw_process) + (SELECT count(*) FROM raw_step) + "
			       "(SELECT count(*) FROM raw_rank_step) + (SELECT count(*) FROM raw_verdict) + "
			       "(SELECT count(*) FROM raw_collective) + (SELECT count(*) FROM raw_ring)"),
			 8);
}

static void test_a_fact_told_from_less_never_replaces_one_told_from_more(void **state)
{
	struct store *s = open_new();
	struct store_job *j = full_job();

	(void)state;
	assert_int_equal(store_write(s, j), 0);
	j->chunks.n = 0;
	j->facts.steps.v[0].n_ranks = 1;
	j->facts.steps.v[0].complete = false;
	j->facts.collectives.v[0].n_seen = 1;
	assert_int_equal(store_write(s, j), 0);
	store_close(s);
	job_free(j);
	assert_int_equal(query("SELECT complete FROM step"), 1);
	assert_int_equal(query("SELECT n_seen FROM collective"), 2);
}

static void test_a_filled_hole_leaves_one_range(void **state)
{
	struct store *s = open_new();
	struct store_job *j = job_new();

	(void)state;
	*JOB_PUSH(j, rings) = (struct row_ring){ 0, 0, 0, 10, false };
	*JOB_PUSH(j, rings) = (struct row_ring){ 0, 0, 20, 30, false };
	assert_int_equal(store_write(s, j), 0);
	j->rings.n = 0;
	*JOB_PUSH(j, rings) = (struct row_ring){ 0, 0, 0, 30, true };
	assert_int_equal(store_write(s, j), 0);
	store_close(s);
	job_free(j);
	assert_int_equal(query("SELECT count(*) FROM raw_ring"), 1);
	assert_int_equal(query("SELECT hi FROM raw_ring"), 30);
}

/* --- the schema ---------------------------------------------------------- */

static void test_every_column_of_every_view_is_documented(void **state)
{
	struct store *s = open_new();

	(void)state;
	store_close(s);
	assert_int_equal(query("SELECT count(*) > 15 FROM sqlite_schema WHERE type = 'view'"), 1);
	/* A name that stands in one and not in the other. */
	assert_int_equal(query("SELECT count(*) FROM (SELECT m.name, c.name FROM sqlite_schema m, "
			       "pragma_table_info(m.name) c WHERE m.type = 'view' "
			       "EXCEPT SELECT view, \"column\" FROM doc WHERE meaning <> '')"),
			 0);
	assert_int_equal(query("SELECT count(*) FROM (SELECT view, \"column\" FROM doc EXCEPT "
			       "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c "
			       "WHERE m.type = 'view')"),
			 0);
	/* A column that ends in a unit has it. */
	assert_int_equal(query("SELECT count(*) FROM doc WHERE (\"column\" LIKE '%\\_ns' ESCAPE '\\' AND "
			       "unit NOT LIKE '%ns%') OR (\"column\" LIKE '%ratio' AND unit = '')"),
			 0);
}

static void test_a_file_made_and_never_filled_is_brought_up_to_date(void **state)
{
	struct store *s;

	(void)state;
	query("PRAGMA application_id = 1397509681"); /* then the collector was killed */
	s = open_new();
	store_close(s);
	assert_int_equal(query("PRAGMA user_version"), 4);
	assert_int_equal(query("SELECT count(*) FROM run"), 0);
}

static void test_views_of_an_older_build_are_made_anew(void **state)
{
	struct store *s = open_new();

	(void)state;
	store_close(s);
	query("DROP VIEW step");
	query("UPDATE raw_meta SET value = 'of another build' WHERE key = 'views'");
	s = open_new();
	store_close(s);
	assert_int_equal(query("SELECT count(*) FROM step"), 0);
}

static void expect_outcome(int outcome, const char *word)
{
	struct store *s = NULL;
	char why[300];

	assert_int_equal(store_open(&s, &(struct store_config){ .path = path }), outcome);
	assert_null(s);
	store_explain(why, sizeof why, outcome, path);
	if (!strstr(why, word) || !strstr(why, path))
		fail_msg("'%s' does not say '%s'", why, word);
}

static void test_a_newer_schema_is_refused(void **state)
{
	struct store *s = open_new();
	sqlite3 *db;

	(void)state;
	store_close(s);
	query("PRAGMA user_version = 999");
	expect_outcome(STORE_NEWER, "newer");
	assert_int_equal(store_open_reader(&db, path), STORE_NEWER);
}

static void test_somebody_elses_file_is_refused_and_left_as_it_is(void **state)
{
	static const char text[] = "dear diary";
	sqlite3 *db;
	char back[32];
	int fd;

	(void)state;
	query("CREATE TABLE mine (x)");
	expect_outcome(STORE_FOREIGN, "not a syncline");
	assert_int_equal(store_open_reader(&db, path), STORE_FOREIGN);
	assert_int_equal(query("SELECT count(*) FROM sqlite_schema"), 1);
	fd = open(path, O_RDWR | O_TRUNC);
	assert_int_equal(write(fd, text, sizeof text), sizeof text);
	expect_outcome(STORE_FOREIGN, "not a syncline");
	assert_int_equal(pread(fd, back, sizeof back, 0), sizeof text);
	close(fd);
}

static void test_a_missing_directory_is_named(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "%s/no/a.db", folder);
	expect_outcome(STORE_NO_DIRECTORY, "directory");
}

static void test_a_directory_is_no_catalogue(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "%s", folder);
	expect_outcome(STORE_UNREADABLE, "cannot be opened");
	snprintf(path, sizeof path, "%s/a.db", folder);
}

static void test_a_file_without_rights_is_unreadable(void **state)
{
	struct store *s = open_new();

	(void)state;
	store_close(s);
	if (geteuid() == 0)
		skip(); /* root may read anything */
	chmod(path, 0);
	expect_outcome(STORE_UNREADABLE, "cannot be opened");
}

static void test_a_second_writer_is_refused(void **state)
{
	struct store *s = open_new();

	(void)state;
	expect_outcome(STORE_BUSY, "another collector");
	store_close(s);
	s = open_new();
	store_close(s);
}

static void test_a_reader_beside_nothing_leaves_no_files(void **state)
{
	struct store *s = open_new();
	char wal[120];
	sqlite3 *db;

	(void)state;
	store_close(s);
	snprintf(wal, sizeof wal, "%s-wal", path);
	assert_int_not_equal(access(wal, F_OK), 0);
	assert_int_equal(store_open_reader(&db, path), 0);
	assert_int_equal(sqlite3_exec(db, "SELECT * FROM run", NULL, NULL, NULL), SQLITE_OK);
	assert_int_not_equal(sqlite3_exec(db, "DELETE FROM raw_run", NULL, NULL, NULL), SQLITE_OK);
	assert_int_not_equal(access(wal, F_OK), 0);
	sqlite3_close(db);
	assert_int_not_equal(access(wal, F_OK), 0);
}

/* --- faults -------------------------------------------------------------- */

/* One life of a catalogue in which the n-th operation on the disk fails. Says
 * which batches were acknowledged. */
static void faulty_life(bool *acked, unsigned n_jobs)
{
	struct store_job *j = job_new();
	struct store *s;

	if (store_open(&s, &(struct store_config){ .path = path }) != 0) {
		job_free(j);
		return;
	}
	for (unsigned i = 0; i < n_jobs; i++) {
		job_clear(j);
		*JOB_PUSH(j, batches) = (struct row_batch){ 0, i + 1 };
		*JOB_PUSH(j, names) = (struct row_name){ 0, i + 1, "a name to fill a page with" };
		acked[i] = store_write(s, j) == 0;
		if (!acked[i]) /* as the writer thread does */
			acked[i] = store_write(s, j) == 0;
	}
	store_close(s);
	job_free(j);
}

static void sweep(bool lasting, int error)
{
	enum { N_JOBS = 6 };
	long n = 0, n_failed;

	do {
		bool acked[N_JOBS] = { false };
		char sql[100];

		fault_plan(n, lasting, error);
		faulty_life(acked, N_JOBS);
		n_failed = fault.n_failed;
		fault.countdown = -1;
		if (access(path, F_OK) == 0 && acked[0])
			assert_int_equal(query("SELECT count(*) FROM pragma_integrity_check "
					       "WHERE integrity_check <> 'ok'"),
					 0);
		for (unsigned i = 0; i < N_JOBS; i++) {
			snprintf(sql, sizeof sql, "SELECT count(*) FROM raw_batch WHERE seq = %u", i + 1);
			if (acked[i] && query(sql) != 1)
				fail_msg("operation %ld failed and acknowledged batch %u is gone", n, i + 1);
		}
		after_test(NULL);
		each_test(NULL);
		n++;
		assert_true(n < 5000);
	} while (n_failed > 0);
	assert_true(n > 20); /* it did reach the writes */
}

static void test_whichever_write_fails_once_no_acknowledged_row_is_lost(void **state)
{
	(void)state;
	sweep(false, SQLITE_IOERR_WRITE);
}

static void test_whenever_the_disk_fills_for_good_no_acknowledged_row_is_lost(void **state)
{
	(void)state;
	sweep(true, SQLITE_FULL);
}

static struct {
	unsigned n_done, n_failed;
	uint64_t last_serial;
} back;

static void on_done(void *arg, struct store_job *j)
{
	(void)arg;
	back.n_failed += j->failed;
	back.n_done++;
	assert_true(j->batches.v[0].seq > back.last_serial); /* in order */
	back.last_serial = j->batches.v[0].seq;
	job_free(j);
}

static void submit(struct store *s, uint64_t seq)
{
	struct store_job *j = job_new();

	*JOB_PUSH(j, batches) = (struct row_batch){ 0, seq };
	store_submit(s, j);
}

static void test_a_full_disk_holds_answers_back_until_there_is_room(void **state)
{
	struct store *s;
	uv_loop_t loop;

	(void)state;
	memset(&back, 0, sizeof back);
	uv_loop_init(&loop);
	assert_int_equal(store_open(&s, &(struct store_config){ .path = path, .loop = &loop,
								.done = on_done, .retry_ms = 1 }),
			 0);
	assert_int_equal(store_start(s), 0);
	submit(s, 1);
	while (back.n_done < 1)
		uv_run(&loop, UV_RUN_ONCE);
	fault_plan(0, true, SQLITE_FULL);
	for (uint64_t i = 2; i <= 20; i++)
		submit(s, i);
	while (store_trouble(s) == 0)
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(store_trouble(s), STORE_FULL);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(back.n_done, 1);
	fault.countdown = -1;
	while (back.n_done < 20)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(store_trouble(s), 0);
	assert_int_equal(back.n_failed, 0);
	assert_int_equal(store_n_pending(s), 0);
	store_stop(s, 1000);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	store_close(s);
	assert_int_equal(query("SELECT count(*) FROM raw_batch"), 20);
}

static void test_a_store_that_cannot_write_gives_jobs_back_as_failed_at_its_end(void **state)
{
	struct store *s;
	uv_loop_t loop;

	(void)state;
	memset(&back, 0, sizeof back);
	uv_loop_init(&loop);
	assert_int_equal(store_open(&s, &(struct store_config){ .path = path, .loop = &loop,
								.done = on_done, .retry_ms = 1 }),
			 0);
	assert_int_equal(store_start(s), 0);
	fault_plan(0, true, SQLITE_FULL);
	submit(s, 1);
	submit(s, 2);
	store_stop(s, 5);
	assert_int_equal(back.n_done, 2);
	assert_int_equal(back.n_failed, 2);
	fault.countdown = -1;
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	store_close(s);
	assert_int_equal(query("SELECT count(*) FROM raw_batch"), 0);
}

static void test_many_jobs_share_a_commit(void **state)
{
	struct store_stats stats;
	struct store *s;
	uv_loop_t loop;

	(void)state;
	memset(&back, 0, sizeof back);
	uv_loop_init(&loop);
	assert_int_equal(store_open(&s, &(struct store_config){ .path = path, .loop = &loop,
								.done = on_done }),
			 0);
	for (uint64_t i = 1; i <= 500; i++) {
		if (i == 2)
			assert_int_equal(store_start(s), 0);
		if (i > 1)
			submit(s, i);
	}
	store_stop(s, 10000);
	store_stats(s, &stats);
	assert_int_equal(back.n_done, 499);
	assert_true(stats.n_commits < 400);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	store_close(s);
	assert_int_equal(query("SELECT count(*) FROM raw_batch"), 499);
}

/* --- ranges and texts ---------------------------------------------------- */

static void test_ranges_agree_with_a_bitmap(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct ranges r = { 0 };
		uint64_t rng = seed * UINT64_C(0x9e3779b97f4a7c15);
		bool have[256] = { false };

		for (int i = 0; i < 60; i++) {
			struct range part, holder;
			uint64_t lo, hi;
			bool merged;

			rng ^= rng << 13;
			rng ^= rng >> 7;
			rng ^= rng << 17;
			lo = rng % 240;
			hi = lo + 1 + (rng >> 32) % 15;
			while (ranges_missing(&r, lo, hi, &part)) {
				for (uint64_t k = part.lo; k < part.hi; k++)
					assert_false(have[k]);
				assert_int_equal(ranges_add(&r, part.lo, part.hi, &holder, &merged), 0);
				for (uint64_t k = part.lo; k < part.hi; k++)
					have[k] = true;
				assert_true(holder.lo <= part.lo && part.hi <= holder.hi);
			}
			for (uint64_t k = 0; k < 256; k++)
				if (ranges_has(&r, k) != have[k])
					fail_msg("seed %llu: %llu", (unsigned long long)seed,
						 (unsigned long long)k);
			for (size_t k = 0; k + 1 < r.n; k++)
				assert_true(r.v[k].hi < r.v[k + 1].lo);
		}
		ranges_fini(&r);
	}
}

static void test_what_a_peer_can_make_us_remember_is_bounded(void **state)
{
	struct ranges r = { 0 };
	struct range holder;
	bool merged;

	(void)state;
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(ranges_add(&r, i * 10, i * 10 + 1, &holder, &merged), 0);
	assert_int_equal(r.n, RANGES_MAX);
	assert_int_equal(ranges_end(&r), 49991);
	ranges_fini(&r);
}

static void test_what_is_not_utf8_becomes_a_mark_and_the_rest_stays(void **state)
{
	struct store_job *j = job_new();

	(void)state;
	assert_string_equal(job_utf8(j, "gr\xc3\xbc\xc3\x9f\tdich\n", 12), "gr\xc3\xbc\xc3\x9f\tdich\n");
	assert_string_equal(job_utf8(j, "a\xff" "b", 3), "a\xef\xbf\xbd" "b");
	assert_string_equal(job_utf8(j, "\xc0\xaf", 2), "\xef\xbf\xbd\xef\xbf\xbd"); /* overlong */
	assert_string_equal(job_utf8(j, "\xed\xa0\x80", 3), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(job_utf8(j, "a\0b\x1b", 4), "a\xef\xbf\xbd" "b\xef\xbf\xbd");
	assert_string_equal(job_utf8(j, "\xf0\x9f\x98", 3), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	job_free(j);
}

/* --- out of memory ------------------------------------------------------- */

static sqlite3_mem_methods memory;
static long memory_left = -1;

static bool no_memory(void)
{
	return memory_left >= 0 && memory_left-- == 0;
}
static void *mm_malloc(int n)
{
	return no_memory() ? NULL : memory.xMalloc(n);
}
static void *mm_realloc(void *p, int n)
{
	return no_memory() ? NULL : memory.xRealloc(p, n);
}

static void test_whichever_allocation_of_sqlite_fails_it_is_said_and_nothing_leaks(void **state)
{
	struct store_job *j = full_job();
	sqlite3_int64 before = sqlite3_memory_used();
	long n = 0;

	(void)state;
	for (;; n += 1 + n / 16) {
		struct store *s = NULL;
		int r;

		memory_left = n;
		r = store_open(&s, &(struct store_config){ .path = path });
		if (r == 0) {
			r = store_write(s, j);
			store_close(s);
		}
		if (memory_left >= 0)
			break;
		memory_left = -1;
		/* SQLite does without some allocations; then all is well. */
		if (r != 0 && r != -ENOMEM)
			fail_msg("allocation %ld: outcome %d", n, r);
		if (sqlite3_memory_used() != before)
			fail_msg("allocation %ld: %lld bytes stay", n,
				 (long long)(sqlite3_memory_used() - before));
		after_test(NULL);
		each_test(NULL);
	}
	memory_left = -1;
	assert_true(n > 500);
	job_free(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, each_test, after_test)
		T(test_what_is_written_is_read_back_after_a_restart),
		T(test_late_events_are_a_drop_count_of_their_own),
		T(test_views_open_what_is_stored_in_rows_behind_them),
		T(test_telling_everything_twice_changes_nothing),
		T(test_a_fact_told_from_less_never_replaces_one_told_from_more),
		T(test_a_filled_hole_leaves_one_range),
		T(test_every_column_of_every_view_is_documented),
		T(test_a_file_made_and_never_filled_is_brought_up_to_date),
		T(test_views_of_an_older_build_are_made_anew),
		T(test_a_newer_schema_is_refused),
		T(test_somebody_elses_file_is_refused_and_left_as_it_is),
		T(test_a_missing_directory_is_named),
		T(test_a_directory_is_no_catalogue),
		T(test_a_file_without_rights_is_unreadable),
		T(test_a_second_writer_is_refused),
		T(test_a_reader_beside_nothing_leaves_no_files),
		T(test_whichever_write_fails_once_no_acknowledged_row_is_lost),
		T(test_whenever_the_disk_fills_for_good_no_acknowledged_row_is_lost),
		T(test_a_full_disk_holds_answers_back_until_there_is_room),
		T(test_a_store_that_cannot_write_gives_jobs_back_as_failed_at_its_end),
		T(test_many_jobs_share_a_commit),
		T(test_ranges_agree_with_a_bitmap),
		T(test_what_a_peer_can_make_us_remember_is_bounded),
		T(test_what_is_not_utf8_becomes_a_mark_and_the_rest_stays),
		T(test_whichever_allocation_of_sqlite_fails_it_is_said_and_nothing_leaks),
#undef T
	};
	sqlite3_mem_methods failing;

	sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory);
	failing = memory;
	failing.xMalloc = mm_malloc;
	failing.xRealloc = mm_realloc;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &failing);
	fault_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
