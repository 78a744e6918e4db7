WITH ordered AS (
  SELECT dur_ns, row_number() OVER (ORDER BY dur_ns) AS i, count(*) OVER () AS n FROM step)
SELECT count(*) AS n, min(step) AS first, max(step) AS last,
       (SELECT CAST(avg(dur_ns) AS INTEGER) FROM ordered WHERE i IN ((n + 1) / 2, (n + 2) / 2)) AS median_ns
FROM step;
