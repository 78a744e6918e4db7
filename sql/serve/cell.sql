SELECT step, rank, CAST(begin_ns AS TEXT) AS begin_ns, begin_err_ns, dur_ns, dur_err_ns, self_ns, wait_ns,
       wait_err_ns, exposed_comm_ns, input_wait_ns, fwd_ns, bwd_ns, opt_ns, eval_ns, excess_ratio,
       peers, coverage, compute_ns, idle_ns, host_ns
FROM rank_step WHERE step = :step AND rank = :rank
