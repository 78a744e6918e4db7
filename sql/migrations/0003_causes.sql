-- Causes: where the time of steps went, over ranks.

-- What each rank of a pipeline did in a step, on its own clock.
CREATE TABLE raw_stage_step (
  step INTEGER NOT NULL, rank INTEGER NOT NULL, stage INTEGER NOT NULL, pipeline INTEGER NOT NULL,
  n_stages INTEGER NOT NULL, n_micro INTEGER NOT NULL, work_ns INTEGER NOT NULL,
  collective_ns INTEGER NOT NULL, message_ns INTEGER NOT NULL, rest_ns INTEGER NOT NULL,
  wait_ns INTEGER NOT NULL, step_ns INTEGER NOT NULL, theory_ratio REAL NOT NULL,
  PRIMARY KEY (step, rank)) WITHOUT ROWID;
