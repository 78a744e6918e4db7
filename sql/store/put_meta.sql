-- Facts about the file itself.
INSERT INTO raw_meta (key, value)
VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
