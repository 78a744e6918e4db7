-- The error of the median is the largest of the steps that it is the median of.
WITH ordered AS (
  SELECT dur_ns, dur_err_ns, row_number() OVER (ORDER BY dur_ns) AS i, count(*) OVER () AS n FROM step),
middle AS (SELECT avg(dur_ns) AS ns, max(dur_err_ns) AS err_ns FROM ordered WHERE i IN ((n + 1) / 2, (n + 2) / 2))
SELECT count(*) AS n, min(step) AS first, max(step) AS last,
       (SELECT CAST(ns AS INTEGER) FROM middle) AS median_ns,
       (SELECT nullif(err_ns, 9223372036854775807) FROM middle) AS median_err_ns
FROM step;
