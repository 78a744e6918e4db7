SELECT count(*) AS n_steps, coalesce(sum(dur_ns), 0) AS path_ns,
       (SELECT coalesce(sum(undecided_ns), 0) FROM blame_step) AS undecided_ns FROM step_path;
