SELECT run_id AS id, name, world_size, started_ns, ended_ns, layout AS "layout:json" FROM run LIMIT 1;
