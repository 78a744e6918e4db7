-- What was lost, by rank and place, since the run began.
SELECT place, rank, sum(n) AS n FROM drop_count GROUP BY place, rank
