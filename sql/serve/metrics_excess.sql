-- Mean excess of each rank over the newest 20 steps, smallest first.
SELECT avg(excess_ratio) AS ratio FROM rank_step
WHERE step > (SELECT max(step) FROM step) - 20 AND excess_ratio IS NOT NULL
GROUP BY rank ORDER BY ratio LIMIT 65536
