-- What only imports tell: each format's own tables. Cells that the format did not say are NULL.

-- Profiles of PyTorch (Kineto), by rank. What the device did: exact by step; step NULL = the whole profile, as
-- Holistic Trace Analysis counts it.
CREATE TABLE raw_profile (
  rank INTEGER NOT NULL, rank_from TEXT NOT NULL, n_work INTEGER NOT NULL, n_steps INTEGER NOT NULL,
  n_launched INTEGER NOT NULL, n_early INTEGER NOT NULL, early_ns INTEGER, n_left_out INTEGER NOT NULL,
  cut_ns INTEGER, n_groups_cut INTEGER NOT NULL);
CREATE TABLE raw_profile_breakdown (
  rank INTEGER NOT NULL, step INTEGER, from_ns INTEGER NOT NULL, to_ns INTEGER NOT NULL, n_work INTEGER NOT NULL,
  idle_ns INTEGER NOT NULL, compute_ns INTEGER NOT NULL, communication_ns INTEGER NOT NULL,
  memory_ns INTEGER NOT NULL, overlap_ns INTEGER NOT NULL, compute_only_ns INTEGER NOT NULL,
  communication_only_ns INTEGER NOT NULL, memory_only_ns INTEGER NOT NULL);
-- Kernels of communication with equal arguments.
CREATE TABLE raw_profile_call (
  rank INTEGER NOT NULL, kernel TEXT, collective TEXT, dtype TEXT, in_elements INTEGER, out_elements INTEGER,
  "group" TEXT, group_name TEXT, group_size INTEGER, ranks TEXT, n INTEGER NOT NULL, sum_ns INTEGER NOT NULL,
  first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL);
CREATE TABLE raw_profile_annotation (
  rank INTEGER NOT NULL, name TEXT NOT NULL, place TEXT NOT NULL, n INTEGER NOT NULL, sum_ns INTEGER NOT NULL,
  n_work INTEGER, work_ns INTEGER);
-- Timelines of pipelines (StragglerAnalysis, MegatronApp): what each worker computed in a step.
CREATE TABLE raw_timeline_stage (
  step INTEGER NOT NULL, rank INTEGER NOT NULL, stage INTEGER, n_forward INTEGER NOT NULL, forward_ns INTEGER NOT NULL,
  n_backward INTEGER NOT NULL, backward_ns INTEGER NOT NULL, span_ns INTEGER, idle_ratio REAL
) STRICT;

-- Training logs of Megatron and DeepSpeed.
CREATE TABLE raw_megatron_step (
  log INTEGER NOT NULL, step INTEGER NOT NULL, n_steps INTEGER, elapsed_ms REAL, n_skipped REAL, n_nan REAL, loss REAL, loss_scale REAL,
  grad_norm REAL, learning_rate REAL, global_batch_size REAL
) STRICT;
CREATE TABLE raw_megatron_timer (log INTEGER NOT NULL, step INTEGER, rank INTEGER, name TEXT NOT NULL, value_ms REAL, least_ms REAL) STRICT;
CREATE TABLE raw_megatron_pipeline (
  log INTEGER PRIMARY KEY,
  n_stages INTEGER, n_micro INTEGER, n_chunks INTEGER, tp INTEGER, dp INTEGER, n_steady INTEGER, first_step INTEGER,
  last_step INTEGER, timers_of TEXT, step_ms REAL, step_theory_ms REAL, forward_ms REAL, backward_ms REAL,
  optimizer_ms REAL, receive_wait_ms REAL, receive_wait_theory_ms REAL, embedding_ms REAL, embedding_theory_ms REAL,
  idle_ratio REAL, idle_theory_ratio REAL, least_forward_ms REAL,
  least_backward_ms REAL, world_size INTEGER
) STRICT;

-- Execution traces (PyTorch, PARAM, Chakra): a file each, its nodes and what comes before what.
CREATE TABLE raw_et_trace (
  trace INTEGER PRIMARY KEY, rank INTEGER, n_nodes INTEGER NOT NULL, schema TEXT, n_comms INTEGER NOT NULL,
  n_data INTEGER NOT NULL, n_control INTEGER NOT NULL, n_parent INTEGER NOT NULL, n_unknown INTEGER NOT NULL,
  n_duplicate INTEGER NOT NULL, n_data_cyclic INTEGER NOT NULL, n_call_cyclic INTEGER NOT NULL
) STRICT;
CREATE TABLE raw_et_node (
  trace INTEGER NOT NULL, rank INTEGER, id INTEGER NOT NULL, name TEXT NOT NULL, type TEXT, parent INTEGER, dur_us INTEGER,
  is_comm INTEGER NOT NULL, collective TEXT, comm_group TEXT, seq INTEGER, n_in INTEGER, n_out INTEGER, bytes INTEGER,
  dtype TEXT, source INTEGER, target INTEGER
) STRICT;
CREATE TABLE raw_et_edge (
  trace INTEGER NOT NULL, rank INTEGER, from_id INTEGER NOT NULL, to_id INTEGER NOT NULL, kind TEXT NOT NULL
) STRICT;
-- What NCCL itself writes: its log, its inspector and profiler, its topology and graph.
CREATE TABLE raw_nccl_rank (comm TEXT NOT NULL, n_ranks INTEGER, rank INTEGER, host TEXT, pid INTEGER, device INTEGER,
  nvml_device INTEGER, bus_id TEXT, n_nodes INTEGER, n_channels INTEGER, complete INTEGER NOT NULL, version TEXT);
CREATE TABLE raw_nccl_comm (comm TEXT PRIMARY KEY, n_ranks INTEGER, n_seen INTEGER NOT NULL, n_complete INTEGER NOT NULL,
  n_channels INTEGER, n_rings INTEGER NOT NULL, n_open INTEGER NOT NULL, n_contradict INTEGER NOT NULL,
  ambiguous INTEGER NOT NULL);
CREATE TABLE raw_nccl_ring (comm TEXT, channel INTEGER, position INTEGER, rank INTEGER NOT NULL,
  PRIMARY KEY (comm, channel, position)) WITHOUT ROWID;
CREATE TABLE raw_nccl_hop (comm TEXT NOT NULL, channel INTEGER NOT NULL, rank INTEGER NOT NULL, previous INTEGER, next INTEGER,
  said_by TEXT NOT NULL);
CREATE TABLE raw_nccl_tree (comm TEXT, channel INTEGER, rank INTEGER, up INTEGER, down_0 INTEGER, down_1 INTEGER, down_2 INTEGER,
  PRIMARY KEY (comm, channel, rank)) WITHOUT ROWID;
CREATE TABLE raw_nccl_edge (comm TEXT NOT NULL, channel INTEGER NOT NULL, connection INTEGER NOT NULL, from_rank INTEGER NOT NULL,
  to_rank INTEGER NOT NULL, side TEXT NOT NULL, transport TEXT NOT NULL, nic TEXT, gdr INTEGER);
CREATE TABLE raw_nccl_nic (host TEXT, pid INTEGER, device INTEGER, network TEXT NOT NULL, number INTEGER NOT NULL,
  name TEXT NOT NULL);
CREATE TABLE raw_nccl_line (host TEXT, pid INTEGER, device INTEGER, at TEXT, kind TEXT NOT NULL, key TEXT, text TEXT NOT NULL);
CREATE TABLE raw_nccl_call (comm TEXT NOT NULL, rank INTEGER, call INTEGER NOT NULL, op TEXT NOT NULL, count INTEGER, dtype TEXT,
  bytes INTEGER, reduction TEXT, root INTEGER, algorithm TEXT, protocol TEXT, first_channel INTEGER, last_channel INTEGER, at TEXT);
CREATE TABLE raw_nccl_perf (comm TEXT NOT NULL, n_ranks INTEGER, rank INTEGER, host TEXT, pid INTEGER, kind TEXT NOT NULL,
  op TEXT, sn INTEGER, peer INTEGER, bytes INTEGER, exec_ns INTEGER, timing TEXT, algbw_gbs REAL, busbw_gbs REAL,
  algorithm TEXT, protocol TEXT, enqueue_ns INTEGER, enqueue_dur_ns INTEGER,
  begin_ns INTEGER, end_ns INTEGER);
CREATE INDEX nccl_perf_by_call ON raw_nccl_perf (comm, kind, op, sn);
CREATE TABLE raw_nccl_drop (comm TEXT, rank INTEGER, host TEXT, pid INTEGER, counter TEXT NOT NULL, n INTEGER);
CREATE TABLE raw_topo_gpu (file TEXT NOT NULL, host TEXT, bus_id TEXT, device INTEGER, rank INTEGER, sm INTEGER, gdr INTEGER,
  numa INTEGER, speed_gts REAL, width INTEGER, n_nvlinks INTEGER);
CREATE TABLE raw_topo_nic (file TEXT NOT NULL, host TEXT, bus_id TEXT, name TEXT, device INTEGER, port INTEGER, speed_mbps INTEGER,
  gdr INTEGER, numa INTEGER, speed_gts REAL, width INTEGER);
CREATE TABLE raw_topo_link (file TEXT NOT NULL, kind TEXT NOT NULL, from_id TEXT, to_id TEXT, count INTEGER, speed_gts REAL,
  width INTEGER);
CREATE TABLE raw_topo_path (file TEXT NOT NULL, gpu TEXT NOT NULL, nic TEXT NOT NULL, dist TEXT NOT NULL, nearest INTEGER NOT NULL);
CREATE TABLE raw_graph_channel (file TEXT NOT NULL, graph INTEGER NOT NULL, algorithm TEXT, pattern TEXT, channel INTEGER NOT NULL,
  position INTEGER NOT NULL, kind TEXT NOT NULL, device INTEGER, speed_intra_gbs REAL, speed_inter_gbs REAL, type_intra TEXT,
  type_inter TEXT, cross_nic INTEGER);
-- PyTorch's Flight Recorder: each rank's status in each group, and its last calls.
CREATE TABLE raw_flight_group (
  rank INTEGER NOT NULL, comm_id TEXT NOT NULL, description TEXT, size INTEGER, pg_id INTEGER,
  last_enqueued INTEGER, last_started INTEGER, last_completed INTEGER, n_calls INTEGER NOT NULL, n_pending INTEGER NOT NULL,
  PRIMARY KEY (rank, comm_id)) WITHOUT ROWID;
CREATE TABLE raw_flight_entry (
  rank INTEGER NOT NULL, record_id INTEGER, comm_id TEXT NOT NULL, seq INTEGER, kind TEXT NOT NULL, op TEXT, state TEXT,
  created_ns INTEGER, seen_started_ns INTEGER, seen_completed_ns INTEGER, duration_ns REAL, timeout_ns INTEGER,
  dtype TEXT, in_shapes TEXT, out_shapes TEXT, thread TEXT, frame TEXT, frames TEXT);
-- Memory snapshots of PyTorch: each device of a rank, what is in use at the end, what was asked for before, and what was refused.
CREATE TABLE raw_memory_snapshot (
  rank INTEGER NOT NULL, device INTEGER NOT NULL, rank_from TEXT NOT NULL, reserved_bytes INTEGER NOT NULL,
  allocated_bytes INTEGER NOT NULL, active_bytes INTEGER NOT NULL, n_segments INTEGER NOT NULL, n_blocks INTEGER NOT NULL,
  n_history INTEGER NOT NULL, n_left_out INTEGER NOT NULL, history_from_ns INTEGER, PRIMARY KEY (rank, device)) STRICT, WITHOUT ROWID;
CREATE TABLE raw_memory_segment (
  rank INTEGER NOT NULL, device INTEGER NOT NULL, address INTEGER NOT NULL, total_bytes INTEGER NOT NULL,
  allocated_bytes INTEGER NOT NULL, active_bytes INTEGER NOT NULL, stream INTEGER, kind TEXT, n_blocks INTEGER NOT NULL,
  largest_free_bytes INTEGER NOT NULL, expandable INTEGER) STRICT;
CREATE TABLE raw_memory_event (
  rank INTEGER NOT NULL, device INTEGER NOT NULL, seq INTEGER NOT NULL, at_ns INTEGER, action TEXT NOT NULL, address INTEGER,
  size_bytes INTEGER NOT NULL, stream INTEGER, site TEXT) STRICT;
CREATE TABLE raw_memory_site (
  rank INTEGER NOT NULL, device INTEGER NOT NULL, site TEXT, n_live INTEGER NOT NULL, live_bytes INTEGER NOT NULL,
  n_allocated INTEGER NOT NULL, allocated_bytes INTEGER NOT NULL, n_freed INTEGER NOT NULL, freed_bytes INTEGER NOT NULL) STRICT;
CREATE TABLE raw_memory_oom (
  rank INTEGER NOT NULL, device INTEGER NOT NULL, seq INTEGER NOT NULL, at_ns INTEGER, asked_bytes INTEGER NOT NULL,
  device_free_bytes INTEGER, allocated_bytes INTEGER, allocated_err_bytes INTEGER, reserved_bytes INTEGER,
  largest_free_bytes INTEGER, capped INTEGER, site TEXT, n_held INTEGER, held_bytes INTEGER, cause TEXT NOT NULL,
  sentence TEXT NOT NULL) STRICT;
