SELECT count(*) AS calls, sum(exec_ns IS NULL) AS enqueue_only, sum(begin_ns IS NOT NULL) AS placed_in_time,
       (SELECT sum(n) FROM nccl_drop) AS dropped
FROM nccl_perf;
