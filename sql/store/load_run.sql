SELECT run_id, name, world_size, started_ns, ended_ns, fleet_minus_raw_ns, boot_id, time_ns_inode
FROM raw_run;
