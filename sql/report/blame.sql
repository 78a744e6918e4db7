-- Who and what the steps waited for, the dearest of each; the view has all.
SELECT "by", who, n_steps, path_ns, path_ratio, excess_ns, held_ns, undecided_ns
FROM (SELECT *, row_number() OVER (PARTITION BY "by" ORDER BY max(coalesce(excess_ns, 0), 0) DESC, path_ns DESC, who) AS place
      FROM blame_by)
WHERE place <= 64 ORDER BY "by", place;
