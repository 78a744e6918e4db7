SELECT process_id, id, text FROM raw_name ORDER BY process_id, id;
