-- Told again whenever the agent learns more: its rank, its end, its losses.
INSERT INTO raw_process (process_id, host_id, agent, unique_id, pid, rank, local_rank,
  world_size, restart_count, host_started_ns, tick_source, tick_error_ns, state, state_at_ns,
  exit_code, signal, n_dropped, n_text_dropped, n_names_dropped, n_gap)
VALUES (:process_id, :host_id, :agent, :unique_id, :pid, :rank, :local_rank, :world_size,
  :restart_count, :host_started_ns, :tick_source, :tick_error_ns, :state, :state_at_ns,
  :exit_code, :signal, :n_dropped, :n_text_dropped, :n_names_dropped, :n_gap)
ON CONFLICT (process_id) DO UPDATE SET
  agent = excluded.agent, rank = excluded.rank, local_rank = excluded.local_rank,
  world_size = excluded.world_size, restart_count = excluded.restart_count,
  tick_source = excluded.tick_source, tick_error_ns = excluded.tick_error_ns,
  state = excluded.state, state_at_ns = excluded.state_at_ns, exit_code = excluded.exit_code,
  signal = excluded.signal, n_dropped = excluded.n_dropped,
  n_text_dropped = excluded.n_text_dropped, n_names_dropped = excluded.n_names_dropped,
  n_gap = excluded.n_gap;
