-- A column named x:json holds JSON text, x:bool a truth value. Instants leave as text: a
-- double in a browser cannot hold them.
SELECT run_id, name, world_size, CAST(started_ns AS TEXT) AS started_ns,
       CAST(ended_ns AS TEXT) AS ended_ns
FROM run LIMIT 1
