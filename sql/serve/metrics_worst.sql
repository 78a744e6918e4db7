SELECT host, max(ratio) FROM (
  SELECT s.rank, avg(s.excess_ratio) AS ratio FROM rank_step s
  WHERE s.step > (SELECT max(step) FROM step) - 20 AND s.excess_ratio IS NOT NULL GROUP BY s.rank) r
JOIN (SELECT rank, host, max(process_id) FROM rank_info GROUP BY rank) i USING (rank)
GROUP BY host ORDER BY host LIMIT 10000
