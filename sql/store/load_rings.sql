SELECT process_id, ring, lo, hi FROM raw_ring ORDER BY process_id, ring, lo;
