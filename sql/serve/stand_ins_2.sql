-- What a catalogue of schema 2 lacks, empty; see stand_ins.sql.
CREATE TEMP TABLE raw_what_if (scope, name, number, slowdown_ratio, share_ratio, step_ns, without_ns, err_ns, n_steps, method);
CREATE TEMP VIEW what_if AS
SELECT scope, name, CASE WHEN scope = 'rank' THEN number END AS rank,
       CASE WHEN scope = 'stage' THEN number END AS stage, slowdown_ratio, share_ratio, step_ns,
       without_ns, err_ns, n_steps, method
FROM temp.raw_what_if;
CREATE TEMP TABLE raw_input (input_id INTEGER PRIMARY KEY, file, format, outcome, rank, n_events);
CREATE TEMP VIEW input AS SELECT input_id AS id, file, format, outcome, rank, n_events FROM temp.raw_input;
