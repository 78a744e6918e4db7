-- The last call of each rank that is in none.
SELECT rank, comm_id AS "group", seq AS call, kind, op, created_ns, frame
FROM (SELECT e.*, row_number() OVER (PARTITION BY rank ORDER BY created_ns DESC, record_id DESC) AS nth
      FROM flight_entry e
      WHERE rank NOT IN (SELECT rank FROM flight_group WHERE n_pending > 0)
        AND EXISTS (SELECT 1 FROM flight_group WHERE n_pending > 0))
WHERE nth = 1 ORDER BY rank LIMIT 10000;
