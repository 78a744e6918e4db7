SELECT step, rank, begin_ns, begin_err_ns, dur_ns, dur_err_ns, self_ns, wait_ns, wait_err_ns, exposed_comm_ns, input_wait_ns,
       excess_ratio, coverage, lead(begin_ns) OVER (PARTITION BY rank ORDER BY step) AS next_ns
FROM rank_step WHERE step BETWEEN :first AND :last ORDER BY rank, step;
