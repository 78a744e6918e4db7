-- The first call of each rank and group that had not ended.
SELECT rank, comm_id AS "group", seq AS call, kind, op, state, created_ns, timeout_ns, frame
FROM (SELECT *, row_number() OVER (PARTITION BY rank, comm_id, kind ORDER BY seq, record_id) AS nth
      FROM flight_entry WHERE state IS NOT 'completed' AND seen_completed_ns IS NULL)
WHERE nth = 1 ORDER BY created_ns, rank LIMIT 10000;
