-- Calls that NCCL timed, by operation and size: the transfer is the least of the ranks' durations.
SELECT comm, op, bytes, count(*) AS calls, max(n_ranks) AS ranks, min(n_seen) AS ranks_seen,
       CAST(avg(transfer_ns) AS INTEGER) AS transfer_ns, CAST(avg(longest_ns) AS INTEGER) AS longest_ns,
       max(busbw_gbs) AS busbw_gbs
FROM nccl_transfer GROUP BY comm, op, bytes ORDER BY sum(longest_ns) DESC LIMIT 64;
