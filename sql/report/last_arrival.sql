-- The calls that cost most, at most 1000 of them; the view has all.
SELECT comm_id AS "group", op || '#' || seq AS call, last_rank AS rank, skew_ns, skew_err_ns AS error_ns, step
FROM collective WHERE decided AND last_rank >= 0 ORDER BY skew_ns DESC, comm_id, seq LIMIT 1000;
