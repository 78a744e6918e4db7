-- No conflict clause: repeats are trimmed before, so a second chunk_id would be our bug.
INSERT INTO raw_chunk (chunk_id, process_id, ring, first_index, n_events, kinds, host_t_min_ns,
  host_t_max_ns, data)
VALUES (:chunk_id, :process_id, :ring, :first_index, :n_events, :kinds, :host_t_min_ns,
  :host_t_max_ns, :data);
