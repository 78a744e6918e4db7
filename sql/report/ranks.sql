WITH spent AS (
  SELECT rank, count(*) AS steps, sum(dur_ns) AS total_ns,
         sum(coalesce(compute_ns, coalesce(fwd_ns, 0) + coalesce(bwd_ns, 0) + coalesce(opt_ns, 0) + coalesce(eval_ns, 0))) AS compute_ns,
         sum(coalesce(exposed_comm_ns, 0) + coalesce(input_wait_ns, 0)) AS noncompute_ns,
         sum(coalesce(exposed_comm_ns, 0)) AS exposed_ns, sum(wait_ns) AS wait_ns,
         CASE WHEN max(wait_err_ns) < 9223372036854775807 THEN sum(wait_err_ns) END AS wait_err_ns,
         avg(excess_ratio) AS excess_ratio
  FROM rank_step GROUP BY rank),
comm AS (SELECT rank, sum(dur_ns) AS comm_ns FROM collective_rank GROUP BY rank),
place AS (
  SELECT rank, host, state, row_number() OVER (PARTITION BY rank ORDER BY restart_count DESC, process_id DESC) AS i
  FROM rank_info)
SELECT p.rank, p.host, p.state, coalesce(s.steps, 0) AS steps,
       max(0, s.total_ns - s.compute_ns - s.noncompute_ns) AS idle_ns, s.compute_ns, s.noncompute_ns,
       s.total_ns, c.comm_ns,
       CASE WHEN c.comm_ns > 0 THEN max(0.0, 1.0 - min(s.exposed_ns, c.comm_ns) * 1.0 / c.comm_ns) END AS overlap_ratio,
       s.wait_ns, s.wait_err_ns, s.excess_ratio
FROM place p LEFT JOIN spent s USING (rank) LEFT JOIN comm c USING (rank)
WHERE p.i = 1 ORDER BY p.rank;
