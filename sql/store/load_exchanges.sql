-- The newest of each host are enough to place it again.
SELECT host_id, host_t0_ns, t1_ns, t2_ns, host_t3_ns
FROM (SELECT *, row_number() OVER (PARTITION BY host_id ORDER BY host_t0_ns DESC) AS age FROM raw_exchange)
WHERE age <= 1024 ORDER BY host_id, host_t0_ns;
