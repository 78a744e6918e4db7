SELECT coalesce(sum(n) FILTER (WHERE place IN ('ring', 'text', 'names', 'gap')), 0) AS n_ranks,
       coalesce(sum(n) FILTER (WHERE place = 'spool'), 0) AS n_agents, coalesce(sum(n) FILTER (WHERE place = 'late'), 0) AS n_late
FROM drop_count;
