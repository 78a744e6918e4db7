-- Without known members nothing says that a rank is missing: such a call counts as matched
-- when it was seen on more than one rank.
SELECT count(*) AS n,
       count(*) FILTER (WHERE NOT mismatch AND CASE WHEN n_expected > 0 THEN n_seen = n_expected ELSE n_seen > 1 END) AS matched,
       count(*) FILTER (WHERE NOT decided) AS undecided,
       count(*) FILTER (WHERE mismatch) AS mismatched
FROM collective;
