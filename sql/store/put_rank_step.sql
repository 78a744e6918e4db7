-- A step of a rank; told again when a late rank completes its peers.
INSERT INTO raw_rank_step (step, rank, begin_ns, begin_err_ns, dur_ns, self_ns, exposed_comm_ns,
  wait_ns, wait_err_ns, input_wait_ns, fwd_ns, bwd_ns, opt_ns, eval_ns, excess_ratio, n_peers,
  coverage, dur_err_ns, compute_ns, idle_ns, host_ns)
VALUES (:step, :rank, :begin_ns, :begin_err_ns, :dur_ns, :self_ns, :exposed_comm_ns, :wait_ns,
  :wait_err_ns, :input_wait_ns, :fwd_ns, :bwd_ns, :opt_ns, :eval_ns, :excess_ratio, :n_peers,
  :coverage, :dur_err_ns, :compute_ns, :idle_ns, :host_ns)
ON CONFLICT (step, rank) DO UPDATE SET
  begin_ns = excluded.begin_ns, begin_err_ns = excluded.begin_err_ns, dur_ns = excluded.dur_ns,
  self_ns = excluded.self_ns, exposed_comm_ns = excluded.exposed_comm_ns,
  wait_ns = excluded.wait_ns, wait_err_ns = excluded.wait_err_ns,
  input_wait_ns = excluded.input_wait_ns, fwd_ns = excluded.fwd_ns, bwd_ns = excluded.bwd_ns,
  opt_ns = excluded.opt_ns, eval_ns = excluded.eval_ns, excess_ratio = excluded.excess_ratio,
  n_peers = excluded.n_peers, coverage = excluded.coverage,
  dur_err_ns = excluded.dur_err_ns, compute_ns = excluded.compute_ns,
  idle_ns = excluded.idle_ns, host_ns = excluded.host_ns;
