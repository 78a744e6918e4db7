-- Finished runs of schema 3: what migrations/0004_imports.sql brought, empty.

CREATE TEMP VIEW profile AS
SELECT NULL AS rank, NULL AS rank_from, NULL AS n_work, NULL AS n_steps, NULL AS n_launched, NULL AS n_early,
       NULL AS early_ns, NULL AS n_left_out, NULL AS cut_ns, NULL AS n_groups_cut WHERE 0;
CREATE TEMP VIEW profile_breakdown AS
SELECT NULL AS rank, NULL AS step, NULL AS from_ns, NULL AS to_ns, NULL AS n_work, NULL AS total_ns, NULL AS idle_ns,
       NULL AS compute_ns, NULL AS non_compute_ns, NULL AS communication_ns, NULL AS memory_ns, NULL AS overlap_ns,
       NULL AS overlap_ratio, NULL AS compute_only_ns, NULL AS communication_only_ns, NULL AS memory_only_ns WHERE 0;
CREATE TEMP VIEW profile_call AS
SELECT NULL AS rank, NULL AS kernel, NULL AS collective, NULL AS dtype, NULL AS in_elements, NULL AS out_elements,
       NULL AS "group", NULL AS group_name, NULL AS group_size, NULL AS ranks, NULL AS n, NULL AS sum_ns,
       NULL AS first_ns, NULL AS last_ns WHERE 0;
CREATE TEMP VIEW profile_annotation AS
SELECT NULL AS rank, NULL AS name, NULL AS place, NULL AS n, NULL AS sum_ns, NULL AS n_work, NULL AS work_ns WHERE 0;
CREATE TEMP TABLE timeline_stage (step, rank, stage, n_forward, forward_ns, n_backward, backward_ns, span_ns, idle_ratio);
CREATE TEMP TABLE megatron_step (log, step, n_steps, elapsed_ms, n_skipped, n_nan, loss, loss_scale, grad_norm, learning_rate, global_batch_size);
CREATE TEMP TABLE megatron_timer (log, step, rank, name, value_ms, least_ms);
CREATE TEMP TABLE megatron_pipeline (log, n_stages, n_micro, n_chunks, tp, dp, n_steady, first_step, last_step, timers_of, step_ms, step_theory_ms, forward_ms, backward_ms, optimizer_ms, receive_wait_ms, receive_wait_theory_ms, embedding_ms, embedding_theory_ms, idle_ratio, idle_theory_ratio, least_forward_ms, least_backward_ms, world_size);
CREATE TEMP TABLE et_trace (trace, rank, n_nodes, schema, n_comms, n_data, n_control, n_parent, n_unknown, n_duplicate, n_data_cyclic, n_call_cyclic);
CREATE TEMP TABLE et_node (trace, rank, id, name, type, parent, dur_us, is_comm, collective, comm_group, seq, n_in, n_out, bytes, dtype, source, target);
CREATE TEMP TABLE et_edge (trace, rank, from_id, to_id, kind);
CREATE TEMP TABLE nccl_rank (comm, n_ranks, rank, job_rank, host, pid, device, nvml_device, bus_id, n_nodes,
  n_channels, complete, version);
CREATE TEMP TABLE nccl_comm (comm, n_ranks, n_seen, n_complete, n_channels, n_rings, n_open, n_contradict,
  rings_complete, ambiguous);
CREATE TEMP TABLE nccl_ring (comm, channel, position, rank);
CREATE TEMP TABLE nccl_hop (comm, channel, rank, previous, next, said_by);
CREATE TEMP TABLE nccl_tree (comm, channel, rank, up, down_0, down_1, down_2);
CREATE TEMP TABLE nccl_edge (comm, channel, connection, from_rank, to_rank, side, transport, nic, gdr);
CREATE TEMP TABLE nccl_nic (host, pid, device, network, number, name);
CREATE TEMP TABLE nccl_line (host, pid, device, at, kind, key, text);
CREATE TEMP TABLE nccl_call (comm, rank, call, op, count, dtype, bytes, reduction, root, algorithm, protocol,
  first_channel, last_channel, at);
CREATE TEMP TABLE nccl_call_check (comm, n_calls, n_ranks, first_odd, shortest);
CREATE TEMP TABLE nccl_perf (comm, n_ranks, rank, host, pid, kind, op, sn, peer, bytes, exec_ns, timing, algbw_gbs,
  busbw_gbs, algorithm, protocol, enqueue_ns, enqueue_dur_ns, begin_ns, end_ns);
CREATE TEMP TABLE nccl_transfer (comm, kind, op, sn, bytes, n_ranks, n_seen, transfer_ns, longest_ns, waiting_rank,
  busbw_gbs);
CREATE TEMP TABLE nccl_drop (comm, rank, host, pid, counter, n);
CREATE TEMP TABLE topo_gpu (file, host, bus_id, device, rank, sm, gdr, numa, speed_gts, width, n_nvlinks);
CREATE TEMP TABLE topo_nic (file, host, bus_id, name, device, port, speed_mbps, gdr, numa, speed_gts, width);
CREATE TEMP TABLE topo_link (file, kind, from_id, to_id, count, speed_gts, width);
CREATE TEMP TABLE topo_path (file, gpu, nic, dist, nearest);
CREATE TEMP TABLE graph_channel (file, graph, algorithm, pattern, channel, position, kind, device, speed_intra_gbs,
  speed_inter_gbs, type_intra, type_inter, cross_nic);
CREATE TEMP TABLE flight_group (
  rank, comm_id, description, size, pg_id, last_enqueued, last_started, last_completed, n_calls, n_pending);
CREATE TEMP TABLE flight_entry (
  rank, record_id, comm_id, seq, kind, op, state, created_ns, seen_started_ns, seen_completed_ns, duration_ns, timeout_ns,
  dtype, in_shapes, out_shapes, thread, frame, frames);
CREATE TEMP TABLE memory_snapshot (
  rank, device, rank_from, reserved_bytes, allocated_bytes, active_bytes, n_segments, n_blocks, n_history,
  n_left_out, history_from_ns);
CREATE TEMP TABLE memory_segment (
  rank, device, address, total_bytes, allocated_bytes, active_bytes, stream, kind, n_blocks, largest_free_bytes,
  expandable);
CREATE TEMP TABLE memory_event (
  rank, device, seq, at_ns, action, address, size_bytes, stream, site);
CREATE TEMP TABLE memory_site (
  rank, device, site, n_live, live_bytes, n_allocated, allocated_bytes, n_freed, freed_bytes);
CREATE TEMP TABLE memory_oom (
  rank, device, seq, at_ns, asked_bytes, device_free_bytes, allocated_bytes, allocated_err_bytes,
  reserved_bytes, largest_free_bytes, capped, site, n_held, held_bytes, cause, sentence);
