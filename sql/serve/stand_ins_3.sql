-- Finished runs of schema 3: what migrations/0004_imports.sql brought, empty.
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
