-- The newest value of a setting stands.
INSERT INTO raw_env (process_id, rank, key, value)
VALUES (:process_id, :rank, :key, :value)
ON CONFLICT (process_id, key) DO UPDATE SET rank = excluded.rank, value = excluded.value;
