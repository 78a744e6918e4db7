-- After a restart a step may be told again from fewer ranks than before: the fuller one stays.
INSERT INTO raw_step (step, begin_ns, dur_ns, dur_err_ns, n_ranks, slowest_rank, complete)
VALUES (:step, :begin_ns, :dur_ns, :dur_err_ns, :n_ranks, :slowest_rank, :complete)
ON CONFLICT (step) DO UPDATE SET
  begin_ns = excluded.begin_ns, dur_ns = excluded.dur_ns, dur_err_ns = excluded.dur_err_ns,
  n_ranks = excluded.n_ranks, slowest_rank = excluded.slowest_rank, complete = excluded.complete
WHERE excluded.n_ranks >= n_ranks;
