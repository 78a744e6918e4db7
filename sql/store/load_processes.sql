SELECT process_id, host_id, agent, unique_id, pid, rank, local_rank, world_size, restart_count,
  host_started_ns, tick_source, tick_error_ns, state, state_at_ns, exit_code, signal, n_dropped,
  n_text_dropped, n_names_dropped, n_gap
FROM raw_process ORDER BY process_id;
