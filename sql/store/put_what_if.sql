-- The answer from most steps stands: a restarted collector begins to count anew.
INSERT INTO raw_what_if (scope, name, number, slowdown_ratio, share_ratio, step_ns, without_ns, err_ns, n_steps, method)
VALUES (:scope, :name, :number, :slowdown_ratio, :share_ratio, :step_ns, :without_ns, :err_ns, :n_steps, :method)
ON CONFLICT (scope, name) DO UPDATE SET
  number = excluded.number, slowdown_ratio = excluded.slowdown_ratio, share_ratio = excluded.share_ratio,
  step_ns = excluded.step_ns, without_ns = excluded.without_ns, err_ns = excluded.err_ns,
  n_steps = excluded.n_steps, method = excluded.method
WHERE excluded.n_steps >= n_steps;
