SELECT count(*) FROM raw_collective WHERE step = :step
