SELECT step, dur_ns, n_ranks FROM step ORDER BY step DESC LIMIT 1
