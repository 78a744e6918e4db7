-- What a catalogue of schema 2 lacks, empty; see stand_ins.sql.
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
