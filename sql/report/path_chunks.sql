-- What was going on from then till then, on the time line as far as clocks are known; in the order in which it came.
SELECT c.chunk_id, c.process_id, c.ring, c.data
FROM raw_chunk c JOIN raw_process p USING (process_id) JOIN (
  SELECT host_id, coalesce((SELECT k.offset_ns FROM raw_clock k WHERE k.host_id = h.host_id ORDER BY k.at_ns DESC LIMIT 1),
                           offset_ns) AS offset_ns FROM raw_host h) o ON o.host_id = p.host_id
WHERE c.host_t_max_ns + o.offset_ns >= :from_ns AND c.host_t_min_ns + o.offset_ns <= :to_ns
ORDER BY c.chunk_id;
