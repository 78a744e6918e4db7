SELECT stage, rank, count(*) AS steps, sum(n_forward) AS forwards, sum(forward_ns) AS forward_ns, sum(n_backward) AS backwards,
       sum(backward_ns) AS backward_ns, sum(span_ns) AS span_ns,
       CASE WHEN sum(span_ns) > 0 THEN 1 - 1.0 * sum(forward_ns + backward_ns) / sum(span_ns) END AS idle
FROM timeline_stage GROUP BY rank ORDER BY stage, rank LIMIT 1024
