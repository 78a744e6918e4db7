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
