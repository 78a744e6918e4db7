-- What a catalogue of schema 2 lacks, empty; see stand_ins.sql.
CREATE TEMP TABLE comm_class (n_groups, n_ranks, n_hosts, op, dtype, size_class_bytes, n, mean_bytes, mean_ns, min_ns, p50_ns,
  p95_ns, p99_ns, max_ns, quantile_err_ratio, dur_err_ns, algbw_gbs, busbw_gbs, peak_gbs, peak_ratio,
  wait_ratio, n_copies, copy_bytes, n_layouts);
CREATE TEMP TABLE comm_class_group (comm_id, n_groups, n_ranks, n_hosts, op, dtype, size_class_bytes, n, mean_bytes, mean_ns, min_ns, p50_ns,
  p95_ns, p99_ns, max_ns, quantile_err_ratio, dur_err_ns, algbw_gbs, busbw_gbs, peak_gbs, peak_ratio,
  wait_ratio, n_copies, copy_bytes, n_layouts);
CREATE TEMP VIEW raw_rank_step AS
SELECT *, NULL AS compute_ns, NULL AS idle_ns, NULL AS host_ns FROM main.raw_rank_step;
CREATE TEMP VIEW rank_step AS
SELECT *, NULL AS compute_ns, NULL AS idle_ns, NULL AS host_ns FROM main.rank_step;
CREATE TEMP TABLE raw_stage_step (step, rank, stage, pipeline, n_stages, n_micro, work_ns, collective_ns,
  message_ns, rest_ns, wait_ns, step_ns, theory_ratio);
CREATE TEMP VIEW stage_step AS
SELECT step, stage, rank, pipeline, n_stages, n_micro, work_ns, collective_ns, message_ns, wait_ns, rest_ns,
       step_ns - work_ns - collective_ns AS idle_ns, step_ns, theory_ratio
FROM temp.raw_stage_step;
CREATE TEMP TABLE raw_path (step INTEGER PRIMARY KEY, begin_ns, dur_ns, dur_err_ns, complete, segments);
CREATE TEMP TABLE raw_blame (step, rank, host_id, kind, name, group_id, bucket, n, path_ns, excess_ns, held_ns, undecided_ns);
CREATE TEMP VIEW step_path AS
SELECT step, begin_ns, dur_ns, dur_err_ns, complete, segments IS NOT NULL AS kept FROM temp.raw_path;
CREATE TEMP VIEW blame AS
SELECT b.rank, b.n_last, b.n_decided, b.n_undecided, b.wait_caused_ns, 0 AS path_ns, NULL AS excess_ns, 0 AS held_ns
FROM main.blame b;
CREATE TEMP VIEW blame_step AS
SELECT step, rank, NULL AS host, NULL AS stage, kind, name, NULL AS comm_id, bucket, n, path_ns, excess_ns, held_ns, undecided_ns
FROM temp.raw_blame;
CREATE TEMP VIEW blame_by AS
SELECT NULL AS "by", NULL AS who, 0 AS n_steps, path_ns, 0.0 AS path_ratio, excess_ns, held_ns, undecided_ns
FROM temp.raw_blame;
CREATE TEMP VIEW critical_path AS
SELECT step, 0 AS n, 0 AS rank, NULL AS host, NULL AS kind, NULL AS name, NULL AS comm_id, NULL AS seq,
       NULL AS from_rank, begin_ns, begin_ns AS end_ns, dur_ns, dur_err_ns AS err_ns, NULL AS excess_ns,
       NULL AS held_ns, NULL AS held_err_ns, 0 AS undecided, 1 AS n_joined, NULL AS bucket FROM temp.raw_path;
CREATE TEMP VIEW slack AS
SELECT step, 0 AS rank, 0 AS slack_ns, 0 AS slack_err_ns, 0 AS n FROM temp.raw_path;
CREATE TEMP VIEW edge AS
SELECT step, NULL AS kind, NULL AS comm_id, NULL AS seq, NULL AS from_rank, NULL AS from_ns, NULL AS to_rank,
       NULL AS to_ns, NULL AS err_ns FROM temp.raw_path;
CREATE TEMP VIEW bucket_stage AS
SELECT rank, step, ddp, micro, bucket, NULL AS comm_id, bytes, seq, ready_ns, submitted_ns, started_ns, reduced_ns,
       applied_ns, err_ns FROM main.raw_bucket;
CREATE TEMP TABLE raw_what_if (scope, name, number, slowdown_ratio, share_ratio, step_ns, without_ns, err_ns, n_steps, method);
CREATE TEMP VIEW what_if AS
SELECT scope, name, CASE WHEN scope = 'rank' THEN number END AS rank,
       CASE WHEN scope = 'stage' THEN number END AS stage, slowdown_ratio, share_ratio, step_ns,
       without_ns, err_ns, n_steps, method
FROM temp.raw_what_if;
CREATE TEMP TABLE raw_input (input_id INTEGER PRIMARY KEY, file, format, outcome, rank, n_events);
CREATE TEMP VIEW input AS SELECT input_id AS id, file, format, outcome, rank, n_events FROM temp.raw_input;
CREATE TEMP VIEW collective AS SELECT *, 0 AS gap FROM main.collective;
