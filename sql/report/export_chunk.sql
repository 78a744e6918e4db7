SELECT data FROM raw_chunk WHERE chunk_id = :chunk_id;
