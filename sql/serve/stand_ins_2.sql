-- What a catalogue of schema 2 lacks, empty; see stand_ins.sql.
CREATE TEMP TABLE raw_stage_step (step, rank, stage, pipeline, n_stages, n_micro, work_ns, collective_ns,
  message_ns, rest_ns, wait_ns, step_ns, theory_ratio);
CREATE TEMP VIEW stage_step AS
SELECT step, stage, rank, pipeline, n_stages, n_micro, work_ns, collective_ns, message_ns, wait_ns, rest_ns,
       step_ns - work_ns - collective_ns AS idle_ns, step_ns, theory_ratio
FROM temp.raw_stage_step;
