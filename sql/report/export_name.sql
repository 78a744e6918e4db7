SELECT text FROM raw_name WHERE process_id = :process_id AND id = :id;
