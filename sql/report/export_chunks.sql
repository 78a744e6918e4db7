-- Raw events of that time, as far as clocks are known, a thread after the other; not their bytes.
SELECT k.process_id, p.rank, k.ring, k.chunk_id, k.kinds
FROM raw_chunk k JOIN raw_process p USING (process_id) JOIN (
  SELECT h.host_id, CASE WHEN h.same_clock THEN h.offset_ns ELSE coalesce((SELECT w.offset_ns FROM raw_clock w
           WHERE w.host_id = h.host_id ORDER BY w.at_ns DESC LIMIT 1), h.offset_ns) END AS offset_ns FROM raw_host h) o USING (host_id)
WHERE p.rank IS NOT NULL AND k.host_t_max_ns + o.offset_ns >= :from_ns - 1000000000
  AND k.host_t_min_ns + o.offset_ns <= :to_ns + 1000000000
ORDER BY p.rank, k.process_id, k.ring, k.first_index;
