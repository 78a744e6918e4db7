-- Steps from :first to :last: how many there are, and from when till when they went.
SELECT count(*) AS n, min(step) AS first, max(step) AS last, min(begin_ns) AS from_ns, max(begin_ns + dur_ns) AS to_ns
FROM step WHERE step BETWEEN :first AND :last;
