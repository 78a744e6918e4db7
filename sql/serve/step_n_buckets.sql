SELECT count(*) FROM raw_bucket WHERE step = :step
