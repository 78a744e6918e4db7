-- The whole of each profile, then its steps: at most 100000 of them; the view has all.
SELECT rank, step, n_work AS work, total_ns, idle_ns, compute_ns, non_compute_ns, communication_ns, memory_ns, overlap_ns,
       overlap_ratio AS overlap, compute_only_ns, communication_only_ns, memory_only_ns
FROM profile_breakdown ORDER BY step IS NOT NULL, step, rank LIMIT 100000;
