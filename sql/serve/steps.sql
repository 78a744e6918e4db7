-- The newest 2000 of the asked range, oldest first.
SELECT * FROM (
  SELECT step, CAST(begin_ns AS TEXT) AS begin_ns, dur_ns, dur_err_ns, n_ranks, slowest_rank,
         complete AS "complete:bool"
  FROM step WHERE step BETWEEN :from AND :to ORDER BY step DESC LIMIT 2000)
ORDER BY step
