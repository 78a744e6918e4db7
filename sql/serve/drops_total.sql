SELECT coalesce(sum(n), 0) AS total FROM drop_count
