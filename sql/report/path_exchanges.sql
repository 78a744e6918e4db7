SELECT host_id, host_t0_ns, t1_ns, t2_ns, host_t3_ns FROM raw_exchange WHERE t1_ns <= :to_ns ORDER BY t1_ns;
