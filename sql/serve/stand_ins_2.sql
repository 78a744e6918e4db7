-- What a catalogue of schema 2 lacks, empty; see stand_ins.sql.
CREATE TEMP VIEW raw_rank_step AS
SELECT *, NULL AS compute_ns, NULL AS idle_ns, NULL AS host_ns FROM main.raw_rank_step;
CREATE TEMP VIEW rank_step AS
SELECT *, NULL AS compute_ns, NULL AS idle_ns, NULL AS host_ns FROM main.rank_step;
