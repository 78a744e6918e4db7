-- The public views (the contract: only ever widened). Dropped and made anew at each open for
-- writing, so a view's text is never migrated. Units: _ns nanoseconds, _ratio 1 = 100 %.

DROP VIEW IF EXISTS run;
CREATE VIEW run AS SELECT run_id, name, world_size, started_ns, ended_ns, layout FROM raw_run;

DROP VIEW IF EXISTS rank_info;
CREATE VIEW rank_info AS
SELECT p.rank, h.name AS host, p.local_rank, NULL AS gpu_uuid, NULL AS dp, NULL AS pp, NULL AS tp,
       NULL AS ep, 0 AS peer_group, p.process_id, p.pid, p.world_size, p.restart_count, p.state,
       p.state_at_ns, p.exit_code, p.signal
FROM raw_process p JOIN raw_host h USING (host_id) WHERE p.rank IS NOT NULL;

DROP VIEW IF EXISTS step;
CREATE VIEW step AS
SELECT step, begin_ns, dur_ns, dur_err_ns, n_ranks, slowest_rank, complete FROM raw_step;

DROP VIEW IF EXISTS rank_step;
CREATE VIEW rank_step AS
SELECT step, rank, begin_ns, begin_err_ns, dur_ns, dur_err_ns, self_ns, wait_ns, wait_err_ns, exposed_comm_ns,
       input_wait_ns, fwd_ns, bwd_ns, opt_ns, eval_ns, excess_ratio, n_peers AS peers, coverage,
       compute_ns, idle_ns, host_ns
FROM raw_rank_step;

DROP VIEW IF EXISTS collective;
CREATE VIEW collective AS
SELECT g.name AS comm_id, c.seq,
       CASE c.op WHEN 1 THEN 'all_reduce' WHEN 2 THEN 'all_gather' WHEN 3 THEN 'reduce_scatter'
         WHEN 4 THEN 'broadcast' WHEN 5 THEN 'reduce' WHEN 6 THEN 'gather' WHEN 7 THEN 'scatter'
         WHEN 8 THEN 'all_to_all' WHEN 9 THEN 'barrier' WHEN 10 THEN 'send' WHEN 11 THEN 'recv'
         ELSE 'unknown' END AS op,
       CASE c.dtype WHEN 1 THEN 'float32' WHEN 2 THEN 'float64' WHEN 3 THEN 'float16'
         WHEN 4 THEN 'bfloat16' WHEN 5 THEN 'float8' WHEN 6 THEN 'int8' WHEN 7 THEN 'uint8'
         WHEN 8 THEN 'int16' WHEN 9 THEN 'int32' WHEN 10 THEN 'int64' WHEN 11 THEN 'bool'
         WHEN 12 THEN 'object' ELSE 'unknown' END AS dtype,
       c.bytes, c.step, c.first_arrival_ns, c.last_arrival_ns, c.end_ns, c.skew_ns, c.skew_err_ns,
       c.last_rank, c.decided, c.mismatch, c.n_expected, c.n_seen, c.gap,
       CASE WHEN c.n_seen = coalesce(c.n_expected, c.n_seen) AND NOT c.gap
         THEN (SELECT a.value ->> 0 FROM json_each(c.arrivals) a ORDER BY a.value ->> 1 DESC LIMIT 1) END AS latest_rank
FROM raw_collective c JOIN raw_group g USING (group_id);

DROP VIEW IF EXISTS collective_rank;
CREATE VIEW collective_rank AS
SELECT comm_id, seq, step, rank, arrival_ns, arrival_err_ns, lateness_ns, wait_ns, wait_err_ns, dur_ns,
       CASE WHEN gap THEN dur_ns ELSE max(0, dur_ns - wait_ns) END AS transfer_ns, wait_err_ns AS transfer_err_ns
FROM (SELECT g.name AS comm_id, c.seq, c.step, c.gap, a.value ->> 0 AS rank,
        c.first_arrival_ns + (a.value ->> 1) AS arrival_ns, a.value ->> 3 AS arrival_err_ns,
        a.value ->> 1 AS lateness_ns, a.value ->> 4 AS wait_err_ns,
        CASE WHEN json_array_length(a.value) > 5 THEN a.value ->> 5
          ELSE c.last_arrival_ns - c.first_arrival_ns - (a.value ->> 1) END AS wait_ns,
        (a.value ->> 2) - (a.value ->> 1) AS dur_ns
      FROM raw_collective c JOIN raw_group g USING (group_id), json_each(c.arrivals) a);

-- Transfers by kind. algbw and busbw are those of nccl-tests: its size is what one rank holds of the
-- whole, its factor makes rates of operations and group sizes comparable with the link's.
DROP VIEW IF EXISTS comm_class_group;
CREATE VIEW comm_class_group AS
SELECT comm_id, n_groups, n_ranks, n_hosts, op, dtype, size_class_bytes, n, mean_bytes, mean_ns, min_ns,
       p50_ns, p95_ns, p99_ns, max_ns, quantile_err_ratio, dur_err_ns, algbw_gbs,
       algbw_gbs * factor AS busbw_gbs, peak_gbs, algbw_gbs * factor / peak_gbs AS peak_ratio, wait_ratio,
       n_copies, copy_bytes, n_layouts
FROM (SELECT g.name AS comm_id, CASE WHEN c.group_id < 0 THEN c.n_groups ELSE 1 END AS n_groups, c.n_ranks, c.n_hosts,
        CASE c.op WHEN 1 THEN 'all_reduce' WHEN 2 THEN 'all_gather' WHEN 3 THEN 'reduce_scatter'
         WHEN 4 THEN 'broadcast' WHEN 5 THEN 'reduce' WHEN 6 THEN 'gather' WHEN 7 THEN 'scatter'
         WHEN 8 THEN 'all_to_all' WHEN 9 THEN 'barrier' WHEN 10 THEN 'send' WHEN 11 THEN 'recv'
         ELSE 'unknown' END AS op,
        CASE c.dtype WHEN 1 THEN 'float32' WHEN 2 THEN 'float64' WHEN 3 THEN 'float16'
         WHEN 4 THEN 'bfloat16' WHEN 5 THEN 'float8' WHEN 6 THEN 'int8' WHEN 7 THEN 'uint8'
         WHEN 8 THEN 'int16' WHEN 9 THEN 'int32' WHEN 10 THEN 'int64' WHEN 11 THEN 'bool'
         WHEN 12 THEN 'object' ELSE 'unknown' END AS dtype,
        1 << c.size AS size_class_bytes, c.n, c.bytes / c.n AS mean_bytes,
        CAST(c.sum_ns / c.n AS INTEGER) AS mean_ns, c.min_ns, c.p50_ns, c.p95_ns, c.p99_ns, c.max_ns,
        0.01 AS quantile_err_ratio, c.err_ns AS dur_err_ns,
        CASE WHEN c.bytes > 0 THEN c.bytes / c.sum_ns * CASE WHEN c.op IN (2, 6) THEN c.n_ranks ELSE 1 END END
          AS algbw_gbs,
        CASE WHEN c.op = 1 THEN 2.0 * (c.n_ranks - 1) / c.n_ranks
          WHEN c.op IN (2, 3, 6, 7, 8) THEN 1.0 * (c.n_ranks - 1) / c.n_ranks ELSE 1.0 END AS factor,
        c.peak_gbs, CASE WHEN c.inside_ns > 0 THEN c.wait_ns / c.inside_ns END AS wait_ratio,
        c.n_copies, c.copy_bytes, c.n_layouts
      FROM raw_comm_class c LEFT JOIN raw_group g ON g.group_id = c.group_id);

DROP VIEW IF EXISTS comm_class;
CREATE VIEW comm_class AS
SELECT n_groups, n_ranks, n_hosts, op, dtype, size_class_bytes, n, mean_bytes, mean_ns, min_ns, p50_ns,
       p95_ns, p99_ns, max_ns, quantile_err_ratio, dur_err_ns, algbw_gbs, busbw_gbs, peak_gbs, peak_ratio,
       wait_ratio, n_copies, copy_bytes, n_layouts
FROM comm_class_group WHERE comm_id IS NULL;

DROP VIEW IF EXISTS blame;
CREATE VIEW blame AS
SELECT r.rank,
       (SELECT count(*) FROM raw_collective c WHERE c.decided AND c.last_rank = r.rank) AS n_last,
       (SELECT count(*) FROM raw_collective c WHERE c.decided) AS n_decided,
       (SELECT count(*) FROM raw_collective c WHERE NOT c.decided) AS n_undecided,
       (SELECT coalesce(sum(c.skew_ns), 0) FROM raw_collective c
         WHERE c.decided AND c.last_rank = r.rank) AS wait_caused_ns,
       coalesce(b.path_ns, 0) AS path_ns, b.excess_ns, coalesce(b.held_ns, 0) AS held_ns
FROM (SELECT DISTINCT rank FROM raw_process WHERE rank IS NOT NULL) r
LEFT JOIN (SELECT rank, sum(path_ns) AS path_ns, sum(excess_ns) AS excess_ns, sum(held_ns) AS held_ns
           FROM raw_blame WHERE kind <> 'carry' GROUP BY rank) b ON b.rank = r.rank;

-- Where the program says which stage a rank is of; of a rank that says it anew, the last word.
DROP VIEW IF EXISTS blame_step;
CREATE VIEW blame_step AS
WITH stage_of AS (
  SELECT rank, coalesce(fields ->> 'stage', fields ->> 'pp') AS stage, max(record_id)
  FROM raw_record WHERE category = 'meta.parallel' AND json_valid(fields) GROUP BY rank)
SELECT b.step, b.rank, h.name AS host, s.stage, b.kind, nullif(b.name, '') AS name, g.name AS comm_id,
       nullif(b.bucket, -1) AS bucket, b.n, b.path_ns, b.excess_ns, b.held_ns, b.undecided_ns
FROM raw_blame b JOIN raw_host h USING (host_id) LEFT JOIN raw_group g USING (group_id)
LEFT JOIN stage_of s ON s.rank = b.rank;

DROP VIEW IF EXISTS blame_by;
CREATE VIEW blame_by AS
WITH told AS (SELECT * FROM blame_step WHERE kind <> 'carry'),
     total AS (SELECT sum(path_ns) AS ns FROM told),
     named AS (
       SELECT 'rank' AS "by", CAST(rank AS TEXT) AS who, step, path_ns, excess_ns, held_ns, undecided_ns FROM told
       UNION ALL SELECT 'host', host, step, path_ns, excess_ns, held_ns, undecided_ns FROM told
       UNION ALL SELECT 'stage', CAST(stage AS TEXT), step, path_ns, excess_ns, held_ns, undecided_ns
                 FROM told WHERE stage IS NOT NULL
       UNION ALL SELECT 'kind', kind, step, path_ns, excess_ns, held_ns, undecided_ns FROM told
       UNION ALL SELECT 'work', name, step, path_ns, excess_ns, held_ns, undecided_ns
                 FROM told WHERE kind IN ('host', 'work', 'kernel') AND name IS NOT NULL
       UNION ALL SELECT 'link', coalesce(comm_id, name), step, path_ns, excess_ns, held_ns, undecided_ns
                 FROM told WHERE kind = 'transfer'
       UNION ALL SELECT 'bucket', CAST(bucket AS TEXT), step, path_ns, excess_ns, held_ns, undecided_ns
                 FROM told WHERE bucket IS NOT NULL)
SELECT "by", who, count(DISTINCT step) AS n_steps, sum(path_ns) AS path_ns,
       CASE WHEN t.ns > 0 THEN sum(path_ns) * 1.0 / t.ns END AS path_ratio, sum(excess_ns) AS excess_ns,
       sum(held_ns) AS held_ns, sum(undecided_ns) AS undecided_ns
FROM named, total t GROUP BY "by", who;

DROP VIEW IF EXISTS step_path;
CREATE VIEW step_path AS
SELECT step, begin_ns, dur_ns, dur_err_ns, complete, segments IS NOT NULL AS kept FROM raw_path;

DROP VIEW IF EXISTS critical_path;
CREATE VIEW critical_path AS
SELECT p.step, s.key AS n, s.value ->> 0 AS rank, h.name AS host, s.value ->> 2 AS kind,
       nullif(s.value ->> 3, '') AS name, g.name AS comm_id, s.value ->> 5 AS seq, s.value ->> 6 AS from_rank,
       p.begin_ns + (s.value ->> 7) AS begin_ns, p.begin_ns + (s.value ->> 7) + (s.value ->> 8) AS end_ns,
       s.value ->> 8 AS dur_ns, s.value ->> 9 AS err_ns, s.value ->> 10 AS excess_ns,
       s.value ->> 11 AS held_ns, s.value ->> 12 AS held_err_ns, s.value ->> 13 AS undecided,
       s.value ->> 14 AS n_joined,
       s.value ->> 15 AS bucket
FROM raw_path p, json_each(p.segments) s JOIN raw_host h ON h.host_id = s.value ->> 1
LEFT JOIN raw_group g ON g.group_id = s.value ->> 4;

DROP VIEW IF EXISTS slack;
CREATE VIEW slack AS
SELECT p.step, a.rank, min(a.wait_ns) AS slack_ns, max(c.skew_err_ns) AS slack_err_ns, count(*) AS n
FROM critical_path p JOIN collective_rank a ON a.comm_id = p.comm_id AND a.seq = p.seq
JOIN collective c ON c.comm_id = p.comm_id AND c.seq = p.seq
WHERE p.kind = 'transfer' GROUP BY p.step, a.rank;

DROP VIEW IF EXISTS edge;
CREATE VIEW edge AS
SELECT c.step, 'entry' AS kind, g.name AS comm_id, c.seq, a.value ->> 0 AS from_rank,
       c.first_arrival_ns + (a.value ->> 1) AS from_ns, NULL AS to_rank, c.last_arrival_ns AS to_ns,
       a.value ->> 3 AS err_ns
FROM raw_collective c JOIN raw_group g USING (group_id), json_each(c.arrivals) a
UNION ALL
SELECT c.step, 'end', g.name, c.seq, NULL, c.last_arrival_ns, a.value ->> 0, c.first_arrival_ns + (a.value ->> 2),
       a.value ->> 3
FROM raw_collective c JOIN raw_group g USING (group_id), json_each(c.arrivals) a WHERE a.value ->> 2 IS NOT NULL
UNION ALL
SELECT step, 'hand_over', comm_id, seq, from_rank, begin_ns, rank, begin_ns, err_ns
FROM critical_path WHERE from_rank IS NOT NULL;

DROP VIEW IF EXISTS bucket_stage;
CREATE VIEW bucket_stage AS
SELECT b.rank, b.step, nullif(b.ddp, -1) AS ddp, b.micro, b.bucket, g.name AS comm_id, b.bytes, b.seq, b.ready_ns,
       b.submitted_ns, b.started_ns, b.reduced_ns, b.applied_ns, b.err_ns
FROM raw_bucket b LEFT JOIN raw_group g USING (group_id);

DROP VIEW IF EXISTS stage_step;
CREATE VIEW stage_step AS
SELECT step, stage, rank, pipeline, n_stages, n_micro, work_ns, collective_ns, message_ns, wait_ns, rest_ns,
       step_ns - work_ns - collective_ns AS idle_ns, step_ns, theory_ratio
FROM raw_stage_step;

DROP VIEW IF EXISTS env_key;
CREATE VIEW env_key AS SELECT rank, key, value FROM raw_env;

DROP VIEW IF EXISTS env_outlier;
CREATE VIEW env_outlier AS
WITH counted AS (SELECT key, value, count(*) AS n FROM raw_env GROUP BY key, value),
     majority AS (SELECT key, value, n, row_number() OVER (PARTITION BY key ORDER BY n DESC, value) AS place,
                         count(*) OVER (PARTITION BY key) AS n_values FROM counted)
SELECT e.key, e.rank, e.value, m.value AS majority_value, m.n AS n_majority
FROM raw_env e JOIN majority m ON m.key = e.key AND m.place = 1
WHERE m.n_values > 1 AND e.value <> m.value;

DROP VIEW IF EXISTS clock_sample;
CREATE VIEW clock_sample AS
SELECT h.name AS host, e.host_t0_ns, e.t1_ns, e.t2_ns, e.host_t3_ns,
       (e.host_t3_ns - e.host_t0_ns) - (e.t2_ns - e.t1_ns) AS rtt_ns,
       CASE e.way WHEN 0 THEN 'stream' ELSE 'udp' END AS way,
       CASE e.way WHEN 2 THEN 'kernel' ELSE 'program' END AS stamps
FROM raw_exchange e JOIN raw_host h USING (host_id);

DROP VIEW IF EXISTS clock_path;
CREATE VIEW clock_path AS
SELECT h.name AS host, p.at_ns, p.way, p.stamps, p.why, p.n_sent, p.n_received, p.n_answered,
       p.n_exchanges, p.n_refused, p.wish
FROM raw_clock_path p JOIN raw_host h USING (host_id);

DROP VIEW IF EXISTS clock_check;
CREATE VIEW clock_check AS
SELECT h.name AS host, p.name AS peer, x.at_ns,
       (x.host_t3_ns - x.host_t0_ns) - (x.peer_t2_ns - x.peer_t1_ns) AS rtt_ns,
       x.surplus_ns, x.error_ns AS surplus_err_ns, x.contradicts
FROM raw_peer_exchange x JOIN raw_host h USING (host_id) JOIN raw_host p ON p.host_id = x.peer_id;

DROP VIEW IF EXISTS clock_snapshot;
CREATE VIEW clock_snapshot AS
SELECT h.name AS host, s.host_ns, s.half_ns, s.mono_ns, s.real_ns, s.boot_ns,
       CASE s.tick_source WHEN 1 THEN 'tsc' WHEN 2 THEN 'cntvct' END AS tick_source, s.tick
FROM raw_snapshot s JOIN raw_host h USING (host_id);

DROP VIEW IF EXISTS clock_step;
CREATE VIEW clock_step AS
SELECT h.name AS host, s.host_from_ns, s.host_to_ns, s.kind, s.step_ns, s.error_ns AS step_err_ns
FROM raw_clock_step s JOIN raw_host h USING (host_id);

DROP VIEW IF EXISTS clock_contradiction;
CREATE VIEW clock_contradiction AS
SELECT c.at_ns, g.name AS "group", c.seq, e.name AS early_host, l.name AS late_host, c.impossible_ns,
       c.against, c.lifted_ns
FROM raw_contradiction c LEFT JOIN raw_group g USING (group_id)
JOIN raw_host e ON e.host_id = c.early_host_id JOIN raw_host l ON l.host_id = c.late_host_id;

DROP VIEW IF EXISTS clock_pair;
CREATE VIEW clock_pair AS
SELECT h.name AS host, r.name AS reference, p.at_ns, p.correction_ns, p.width_ns, p.probe_width_ns,
       p.soft_ns AS correction_soft_ns, p.basis
FROM raw_clock_pair p JOIN raw_host h USING (host_id) JOIN raw_host r ON r.host_id = p.reference_id;

DROP VIEW IF EXISTS clock_quality;
CREATE VIEW clock_quality AS
SELECT h.name AS host, c.at_ns, c.offset_ns, c.error_ns AS offset_err_ns, c.rtt_ns, c.quality, h.same_clock,
       c.soft_ns AS offset_soft_ns, c.skew_ppb, c.status
FROM raw_clock c JOIN raw_host h USING (host_id);

DROP VIEW IF EXISTS drop_count;
CREATE VIEW drop_count AS
SELECT rank, 'ring' AS place, n_dropped AS n FROM raw_process
UNION ALL SELECT rank, 'text', n_text_dropped FROM raw_process
UNION ALL SELECT rank, 'names', n_names_dropped FROM raw_process
UNION ALL SELECT rank, 'gap', n_gap FROM raw_process
UNION ALL SELECT NULL, 'spool', n_given_up FROM raw_agent
UNION ALL SELECT NULL, 'late', value FROM raw_meta WHERE key = 'late_events';

DROP VIEW IF EXISTS finding;
CREATE VIEW finding AS
SELECT verdict_id AS id, class, severity, confidence, culprit, sentence, evidence, rules_out, coverage,
       first_step, last_step, onset_ns, detected_ns, cost_ratio, margin_ns, error_ns, error_kind
FROM raw_verdict;

DROP VIEW IF EXISTS log;
CREATE VIEW log AS SELECT at_ns, err_ns, rank, kind, level, logger, text FROM raw_log;

DROP VIEW IF EXISTS record;
CREATE VIEW record AS SELECT at_ns, rank, category, fields FROM raw_record;

DROP VIEW IF EXISTS gauge;
CREATE VIEW gauge AS
SELECT g.at_ns, h.name AS host, g.rank, g.name, g.value FROM raw_gauge g JOIN raw_host h USING (host_id);

DROP VIEW IF EXISTS meta;
CREATE VIEW meta AS SELECT key, value FROM raw_meta WHERE typeof(value) <> 'blob';

DROP VIEW IF EXISTS what_if;
CREATE VIEW what_if AS
SELECT scope, name, CASE WHEN scope = 'rank' THEN number END AS rank,
       CASE WHEN scope = 'stage' THEN number END AS stage, slowdown_ratio, share_ratio, step_ns,
       without_ns, err_ns, n_steps, method
FROM raw_what_if;

DROP VIEW IF EXISTS input;
CREATE VIEW input AS SELECT input_id AS id, file, format, outcome, rank, n_events FROM raw_input;

DROP VIEW IF EXISTS profile;
CREATE VIEW profile AS
SELECT rank, rank_from, n_work, n_steps, n_launched, n_early, early_ns, n_left_out, cut_ns, n_groups_cut
FROM raw_profile;

DROP VIEW IF EXISTS profile_breakdown;
CREATE VIEW profile_breakdown AS
SELECT rank, step, from_ns, to_ns, n_work, to_ns - from_ns AS total_ns, idle_ns, compute_ns,
       to_ns - from_ns - idle_ns - compute_ns AS non_compute_ns, communication_ns, memory_ns, overlap_ns,
       1.0 * overlap_ns / nullif(communication_ns, 0) AS overlap_ratio, compute_only_ns, communication_only_ns,
       memory_only_ns
FROM raw_profile_breakdown;

DROP VIEW IF EXISTS profile_call;
CREATE VIEW profile_call AS
SELECT rank, kernel, collective, dtype, in_elements, out_elements, "group", group_name, group_size, ranks, n, sum_ns,
       first_ns, last_ns
FROM raw_profile_call;

DROP VIEW IF EXISTS profile_annotation;
CREATE VIEW profile_annotation AS
SELECT rank, name, place, n, sum_ns, n_work, work_ns FROM raw_profile_annotation;
DROP VIEW IF EXISTS timeline_stage;
CREATE VIEW timeline_stage AS
SELECT step, rank, stage, n_forward, forward_ns, n_backward, backward_ns, span_ns, idle_ratio FROM raw_timeline_stage;

DROP VIEW IF EXISTS megatron_step;
CREATE VIEW megatron_step AS
SELECT log, step, n_steps, elapsed_ms, n_skipped, n_nan, loss, loss_scale, grad_norm, learning_rate, global_batch_size FROM raw_megatron_step;

DROP VIEW IF EXISTS megatron_timer;
CREATE VIEW megatron_timer AS
SELECT log, step, rank, name, value_ms, least_ms FROM raw_megatron_timer;

DROP VIEW IF EXISTS megatron_pipeline;
CREATE VIEW megatron_pipeline AS
SELECT log, n_stages, n_micro, n_chunks, tp, dp, n_steady, first_step, last_step, timers_of, step_ms, step_theory_ms,
       forward_ms, backward_ms, optimizer_ms, receive_wait_ms, receive_wait_theory_ms, embedding_ms, embedding_theory_ms,
       idle_ratio, idle_theory_ratio, least_forward_ms, least_backward_ms, world_size FROM raw_megatron_pipeline;

DROP VIEW IF EXISTS et_trace;
CREATE VIEW et_trace AS
SELECT trace, rank, n_nodes, schema, n_comms, n_data, n_control, n_parent, n_unknown, n_duplicate, n_data_cyclic, n_call_cyclic FROM raw_et_trace;

DROP VIEW IF EXISTS et_node;
CREATE VIEW et_node AS
SELECT trace, rank, id, name, type, parent, dur_us, is_comm, collective, comm_group, seq, n_in, n_out, bytes, dtype, source,
       target FROM raw_et_node;

DROP VIEW IF EXISTS et_edge;
CREATE VIEW et_edge AS
SELECT trace, rank, from_id, to_id, kind FROM raw_et_edge;
DROP VIEW IF EXISTS nccl_rank;
CREATE VIEW nccl_rank AS
SELECT r.comm, r.n_ranks, r.rank,
       (SELECT w.rank FROM raw_nccl_rank w WHERE w.host = r.host AND w.pid = r.pid AND w.device = r.device
        AND w.n_ranks = (SELECT max(n_ranks) FROM raw_nccl_rank WHERE rank IS NOT NULL) LIMIT 1) AS job_rank,
       r.host, r.pid, r.device, r.nvml_device, r.bus_id, r.n_nodes, r.n_channels, r.complete, r.version
FROM raw_nccl_rank r;

DROP VIEW IF EXISTS nccl_comm;
CREATE VIEW nccl_comm AS
SELECT comm, n_ranks, n_seen, n_complete, nullif(n_channels, 0) AS n_channels, n_rings, n_open, n_contradict,
       n_rings > 0 AND n_rings >= n_channels AND n_open = 0 AND n_contradict = 0 AS rings_complete, ambiguous
FROM raw_nccl_comm;

DROP VIEW IF EXISTS nccl_ring;
CREATE VIEW nccl_ring AS
SELECT comm, channel, position, rank
FROM raw_nccl_ring;

DROP VIEW IF EXISTS nccl_hop;
CREATE VIEW nccl_hop AS
SELECT comm, channel, rank, previous, next, said_by
FROM raw_nccl_hop;

DROP VIEW IF EXISTS nccl_tree;
CREATE VIEW nccl_tree AS
SELECT comm, channel, rank, up, down_0, down_1, down_2
FROM raw_nccl_tree;

DROP VIEW IF EXISTS nccl_edge;
CREATE VIEW nccl_edge AS
SELECT comm, channel, connection, from_rank, to_rank, side, transport, nic, gdr
FROM raw_nccl_edge;

DROP VIEW IF EXISTS nccl_nic;
CREATE VIEW nccl_nic AS
SELECT host, pid, device, network, number, name
FROM raw_nccl_nic;

DROP VIEW IF EXISTS nccl_line;
CREATE VIEW nccl_line AS
SELECT host, pid, device, at, kind, key, text
FROM raw_nccl_line;

DROP VIEW IF EXISTS nccl_call;
CREATE VIEW nccl_call AS
SELECT comm, rank, call, op, count, dtype, bytes, reduction, root, algorithm, protocol, first_channel,
       last_channel, at
FROM raw_nccl_call;

DROP VIEW IF EXISTS nccl_call_check;
CREATE VIEW nccl_call_check AS
WITH told AS (SELECT comm, rank, count(*) AS n FROM raw_nccl_call WHERE rank IS NOT NULL GROUP BY comm, rank),
     odd AS (SELECT comm, call FROM raw_nccl_call WHERE rank IS NOT NULL AND op NOT IN ('Send', 'Recv') GROUP BY comm, call
             HAVING count(DISTINCT op || ' ' || ifnull(count, -1) || ' ' || ifnull(dtype, '') || ' ' || ifnull(reduction, '')
                                   || ' ' || ifnull(root, -1)) > 1)
SELECT comm, max(n) AS n_calls, count(*) AS n_ranks, (SELECT min(call) FROM odd WHERE odd.comm = told.comm) AS first_odd,
       CASE WHEN min(n) < max(n) THEN (SELECT rank FROM told s WHERE s.comm = told.comm ORDER BY n, rank LIMIT 1) END AS shortest
FROM told GROUP BY comm;

DROP VIEW IF EXISTS nccl_perf;
CREATE VIEW nccl_perf AS
SELECT comm, n_ranks, rank, host, pid, kind, op, sn, peer, bytes, exec_ns, timing, algbw_gbs, busbw_gbs,
       algorithm, protocol, enqueue_ns, enqueue_dur_ns, begin_ns, end_ns
FROM raw_nccl_perf;

DROP VIEW IF EXISTS nccl_transfer;
CREATE VIEW nccl_transfer AS
SELECT comm, kind, op, sn, max(bytes) AS bytes, max(n_ranks) AS n_ranks, count(DISTINCT rank) AS n_seen,
       min(exec_ns) AS transfer_ns, max(exec_ns) AS longest_ns,
       CASE WHEN max(exec_ns) > min(exec_ns) THEN
         (SELECT p.rank FROM raw_nccl_perf p WHERE p.comm = q.comm AND p.kind = q.kind AND p.op IS q.op AND p.sn = q.sn
          ORDER BY p.exec_ns DESC, p.rank LIMIT 1) END AS waiting_rank,
       max(busbw_gbs) AS busbw_gbs
FROM raw_nccl_perf q WHERE kind = 'coll' AND exec_ns IS NOT NULL AND sn IS NOT NULL GROUP BY comm, kind, op, sn;

DROP VIEW IF EXISTS nccl_drop;
CREATE VIEW nccl_drop AS
SELECT comm, rank, host, pid, counter, n
FROM raw_nccl_drop;

DROP VIEW IF EXISTS topo_gpu;
CREATE VIEW topo_gpu AS
SELECT file, host, bus_id, device, rank, sm, gdr, numa, speed_gts, width, n_nvlinks
FROM raw_topo_gpu;

DROP VIEW IF EXISTS topo_nic;
CREATE VIEW topo_nic AS
SELECT file, host, bus_id, name, device, port, speed_mbps, gdr, numa, speed_gts, width
FROM raw_topo_nic;

DROP VIEW IF EXISTS topo_link;
CREATE VIEW topo_link AS
SELECT file, kind, from_id, to_id, count, speed_gts, width
FROM raw_topo_link;

DROP VIEW IF EXISTS topo_path;
CREATE VIEW topo_path AS
SELECT file, gpu, nic, dist, nearest
FROM raw_topo_path;

DROP VIEW IF EXISTS graph_channel;
CREATE VIEW graph_channel AS
SELECT file, graph, algorithm, pattern, channel, position, kind, device, speed_intra_gbs, speed_inter_gbs,
       type_intra, type_inter, cross_nic
FROM raw_graph_channel;
DROP VIEW IF EXISTS flight_group;
CREATE VIEW flight_group AS
SELECT rank, comm_id, description, size, pg_id, last_enqueued, last_started, last_completed, n_calls, n_pending
FROM raw_flight_group;

DROP VIEW IF EXISTS flight_entry;
CREATE VIEW flight_entry AS
SELECT rank, record_id, comm_id, seq, kind, op, state, created_ns, seen_started_ns, seen_completed_ns, duration_ns,
       timeout_ns, dtype, in_shapes, out_shapes, thread, frame, frames
FROM raw_flight_entry;

DROP VIEW IF EXISTS memory_snapshot;
CREATE VIEW memory_snapshot AS
SELECT rank, device, rank_from, reserved_bytes, allocated_bytes, active_bytes, n_segments, n_blocks, n_history,
       n_left_out, history_from_ns
FROM raw_memory_snapshot;

DROP VIEW IF EXISTS memory_segment;
CREATE VIEW memory_segment AS
SELECT rank, device, address, total_bytes, allocated_bytes, active_bytes, stream, kind, n_blocks, largest_free_bytes,
       expandable
FROM raw_memory_segment;

DROP VIEW IF EXISTS memory_event;
CREATE VIEW memory_event AS
SELECT rank, device, seq, at_ns, action, address, size_bytes, stream, site
FROM raw_memory_event;

DROP VIEW IF EXISTS memory_site;
CREATE VIEW memory_site AS
SELECT rank, device, site, n_live, live_bytes, n_allocated, allocated_bytes, n_freed, freed_bytes
FROM raw_memory_site;

DROP VIEW IF EXISTS memory_oom;
CREATE VIEW memory_oom AS
SELECT rank, device, seq, at_ns, asked_bytes, device_free_bytes, allocated_bytes, allocated_err_bytes,
       reserved_bytes, largest_free_bytes, capped, site, n_held, held_bytes, cause, sentence
FROM raw_memory_oom;
