SELECT value FROM raw_meta WHERE key = :key;
