SELECT step, CAST(begin_ns AS TEXT) AS begin_ns, dur_ns, dur_err_ns, n_ranks, slowest_rank,
       complete AS "complete:bool"
FROM step WHERE step = :step
