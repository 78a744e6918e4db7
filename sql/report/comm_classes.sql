-- What took most time first, at most 200 of them; the view has all.
SELECT n_groups, n_ranks, n_hosts, op, dtype, size_class_bytes AS size_class, n, CAST(mean_bytes AS INTEGER) AS mean_bytes,
       mean_ns, p50_ns, p95_ns, p99_ns, max_ns, quantile_err_ratio, dur_err_ns, algbw_gbs, busbw_gbs, peak_gbs,
       peak_ratio, wait_ratio, n_copies, copy_bytes, n_layouts
FROM comm_class ORDER BY n * mean_ns DESC, op, n_ranks, n_hosts, dtype, size_class_bytes LIMIT 200;
