-- Committed batches as ranges [lo, hi) an agent: islands of consecutive numbers.
SELECT agent, min(seq), max(seq) + 1
FROM (SELECT agent, seq, seq - row_number() OVER (PARTITION BY agent ORDER BY seq) AS island FROM raw_batch)
GROUP BY agent, island ORDER BY agent, 2;
