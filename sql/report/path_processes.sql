SELECT process_id, host_id, rank, world_size, restart_count, tick_error_ns
FROM raw_process WHERE rank IS NOT NULL ORDER BY process_id;
