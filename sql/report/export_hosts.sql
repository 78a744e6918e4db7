SELECT host_id, same_clock, offset_ns FROM raw_host ORDER BY host_id;
