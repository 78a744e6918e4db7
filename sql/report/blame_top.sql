-- What ranks did while the steps waited for them: first what took longer than its peers take, then what took most.
SELECT rank, host, stage, kind, name, comm_id, count(DISTINCT step) AS n_steps, sum(path_ns) AS path_ns,
       sum(path_ns) * 1.0 / (SELECT sum(path_ns) FROM blame_step WHERE kind <> 'carry') AS path_ratio,
       sum(excess_ns) AS excess_ns, sum(held_ns) AS held_ns, sum(undecided_ns) AS undecided_ns
FROM blame_step WHERE kind <> 'carry' GROUP BY rank, host, stage, kind, name, comm_id
HAVING sum(path_ns) > 0 ORDER BY max(coalesce(sum(excess_ns), 0), 0) DESC, sum(path_ns) DESC, rank LIMIT 32;
