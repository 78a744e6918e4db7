-- The whole of a run: its steps, and from when till when anything was that a clock places; not from before it was started,
-- unless steps say so.
WITH placed AS (
  SELECT h.host_id, CASE WHEN h.same_clock THEN h.offset_ns ELSE (SELECT w.offset_ns FROM raw_clock w
           WHERE w.host_id = h.host_id ORDER BY w.at_ns DESC LIMIT 1) END AS offset_ns FROM raw_host h),
span AS (
  SELECT min(begin_ns) AS from_ns, max(begin_ns + dur_ns) AS to_ns FROM step
  UNION ALL SELECT min(first_arrival_ns), max(coalesce(end_ns, last_arrival_ns)) FROM collective
  UNION ALL SELECT min(k.host_t_min_ns + o.offset_ns), max(k.host_t_max_ns + o.offset_ns)
            FROM raw_chunk k JOIN raw_process p USING (process_id) JOIN placed o USING (host_id) WHERE p.rank IS NOT NULL)
SELECT (SELECT min(step) FROM step) AS first, (SELECT max(step) FROM step) AS last,
       max(coalesce(min(span.from_ns), r.started_ns), min(r.started_ns, coalesce(told.from_ns, r.started_ns))) AS from_ns,
       coalesce(max(span.to_ns), r.ended_ns, r.started_ns) AS to_ns, r.started_ns
FROM span, (SELECT started_ns, ended_ns FROM run LIMIT 1) r,
     (SELECT min(begin_ns) AS from_ns FROM step) told;
