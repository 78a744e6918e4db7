-- As of now; a collector that was started again counts from its start and takes over once it has more.
INSERT INTO raw_comm_class (
  group_id, n_ranks, n_hosts, op, dtype, size, n_groups, n, bytes, sum_ns, min_ns, p50_ns, p95_ns,
  p99_ns, max_ns, err_ns, wait_ns, inside_ns, n_copies, copy_bytes, n_layouts, peak_gbs)
VALUES (
  :group_id, :n_ranks, :n_hosts, :op, :dtype, :size, :n_groups, :n, :bytes, :sum_ns, :min_ns,
  :p50_ns, :p95_ns, :p99_ns, :max_ns, :err_ns, :wait_ns, :inside_ns, :n_copies, :copy_bytes,
  :n_layouts, :peak_gbs)
ON CONFLICT (group_id, n_ranks, n_hosts, op, dtype, size) DO UPDATE SET
  n_groups = excluded.n_groups, n = excluded.n, bytes = excluded.bytes, sum_ns = excluded.sum_ns,
  min_ns = excluded.min_ns, p50_ns = excluded.p50_ns, p95_ns = excluded.p95_ns,
  p99_ns = excluded.p99_ns, max_ns = excluded.max_ns, err_ns = excluded.err_ns,
  wait_ns = excluded.wait_ns, inside_ns = excluded.inside_ns, n_copies = excluded.n_copies,
  copy_bytes = excluded.copy_bytes, n_layouts = excluded.n_layouts, peak_gbs = excluded.peak_gbs
WHERE excluded.n >= n;
