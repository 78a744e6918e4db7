-- What each rank lost on its way here, of those that lost anything.
SELECT rank, sum(n) FILTER (WHERE place = 'ring'), sum(n) FILTER (WHERE place = 'text'), sum(n) FILTER (WHERE place = 'names'),
       sum(n) FILTER (WHERE place = 'gap')
FROM drop_count WHERE rank IS NOT NULL GROUP BY rank HAVING sum(n) > 0 ORDER BY rank;
