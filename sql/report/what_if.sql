-- What costs most first.
SELECT scope, name, rank, stage, slowdown_ratio AS slowdown, share_ratio AS share, step_ns, without_ns, err_ns AS error_ns,
       n_steps AS steps, method
FROM what_if ORDER BY scope, coalesce(share_ratio, -1e9) DESC, slowdown_ratio DESC, name;
