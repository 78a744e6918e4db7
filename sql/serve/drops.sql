SELECT rank, place, sum(n) AS n FROM drop_count GROUP BY rank, place HAVING sum(n) > 0
ORDER BY n DESC, rank, place LIMIT 10000
