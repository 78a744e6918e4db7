SELECT place, sum(n) FROM drop_count GROUP BY place ORDER BY place
