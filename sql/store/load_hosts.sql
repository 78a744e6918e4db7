SELECT host_id, name, boot_id, time_ns_inode, same_clock, offset_ns FROM raw_host ORDER BY host_id;
