SELECT run_id AS id, name, world_size, started_ns, ended_ns, coalesce((SELECT value FROM meta WHERE key = 'layout'), layout) AS "layout:json" FROM run LIMIT 1;
