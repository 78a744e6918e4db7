-- One row: how many steps, their time, cumulative counts by bound, when they began and ended.
SELECT count(*) AS n, total(dur_ns) / 1e9 AS sum_s, min(begin_ns) AS begin_ns, max(begin_ns + dur_ns) AS end_ns,
       min(dur_ns) / 1e9 AS min_s, max(dur_ns) / 1e9 AS max_s,
       json_array(count(*) FILTER (WHERE dur_ns <= 10000000), count(*) FILTER (WHERE dur_ns <= 25000000),
         count(*) FILTER (WHERE dur_ns <= 50000000), count(*) FILTER (WHERE dur_ns <= 100000000),
         count(*) FILTER (WHERE dur_ns <= 250000000), count(*) FILTER (WHERE dur_ns <= 500000000),
         count(*) FILTER (WHERE dur_ns <= 1000000000), count(*) FILTER (WHERE dur_ns <= 2500000000),
         count(*) FILTER (WHERE dur_ns <= 5000000000), count(*) FILTER (WHERE dur_ns <= 10000000000),
         count(*) FILTER (WHERE dur_ns <= 30000000000), count(*) FILTER (WHERE dur_ns <= 60000000000),
         count(*) FILTER (WHERE dur_ns <= 300000000000)) AS "counts:json"
FROM step WHERE dur_ns IS NOT NULL
