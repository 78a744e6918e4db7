SELECT step, rank, begin_ns, begin_err_ns, dur_ns, self_ns, exposed_comm_ns, wait_ns, wait_err_ns,
  input_wait_ns, fwd_ns, bwd_ns, opt_ns, eval_ns, excess_ratio, n_peers, coverage,
  dur_err_ns, compute_ns, idle_ns, host_ns
FROM raw_rank_step ORDER BY step, rank;
