SELECT (SELECT coalesce(max(chunk_id), 0) FROM raw_chunk),
  (SELECT coalesce(max(step), -1) FROM raw_step WHERE complete);
