-- Kernels of communication by their arguments over all ranks, the longest first.
SELECT kernel, collective, dtype, in_elements, out_elements, "group", group_name, group_size, ranks,
       count(DISTINCT rank) AS on_ranks, sum(n) AS n, CAST(total(sum_ns) AS INTEGER) AS sum_ns
FROM profile_call
GROUP BY kernel, collective, dtype, in_elements, out_elements, "group", group_name, group_size, ranks
ORDER BY total(sum_ns) DESC, min(first_ns) LIMIT 1000;
