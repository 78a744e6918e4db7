-- The largest decided skew of each group and call over the newest 20 steps.
SELECT comm_id, op, max(skew_ns) / 1e9 FROM collective
WHERE step > (SELECT max(step) FROM step) - 20 AND decided
GROUP BY comm_id, op ORDER BY comm_id, op LIMIT 1000
