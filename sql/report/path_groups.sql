-- Who is in which group, as the ranks said it.
SELECT fields FROM raw_record WHERE category = 'meta.group' ORDER BY record_id;
