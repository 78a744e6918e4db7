-- What open state still needs: from the low-water mark on.
SELECT chunk_id, process_id, ring, first_index, data FROM raw_chunk WHERE chunk_id >= :low_water ORDER BY chunk_id;
