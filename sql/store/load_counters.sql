-- Where numbering goes on, and where a replay starts.
SELECT (SELECT coalesce(max(chunk_id), 0) FROM raw_chunk),
  (SELECT coalesce(max(value), 0) FROM raw_meta WHERE key = 'low_water');
