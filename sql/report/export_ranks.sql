-- Each process that was a rank: who, where, in which life of the job, and how many of them were that rank.
SELECT p.rank, p.process_id, p.host_id, h.name AS host, p.pid, p.restart_count, p.tick_error_ns,
       count(*) OVER (PARTITION BY p.rank) AS n_lives
FROM raw_process p JOIN raw_host h USING (host_id) WHERE p.rank IS NOT NULL ORDER BY p.rank, p.restart_count, p.process_id;
