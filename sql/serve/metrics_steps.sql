-- One pass; le_* are cumulative as Prometheus wants them.
SELECT count(*) AS n, coalesce(sum(dur_ns), 0) / 1e9 AS sum_s,
       total(dur_ns <= 10000000) AS "0.01", total(dur_ns <= 25000000) AS "0.025",
       total(dur_ns <= 50000000) AS "0.05", total(dur_ns <= 100000000) AS "0.1",
       total(dur_ns <= 250000000) AS "0.25", total(dur_ns <= 500000000) AS "0.5",
       total(dur_ns <= 1000000000) AS "1", total(dur_ns <= 2500000000) AS "2.5",
       total(dur_ns <= 5000000000) AS "5", total(dur_ns <= 10000000000) AS "10",
       total(dur_ns <= 30000000000) AS "30", total(dur_ns <= 60000000000) AS "60",
       total(dur_ns <= 300000000000) AS "300"
FROM step
