-- Causes: where the time of steps went, over ranks.

-- What the job would do if a part of it was ideal, or it alone was not.
CREATE TABLE raw_what_if (
  scope TEXT NOT NULL, name TEXT NOT NULL, number INTEGER, slowdown_ratio REAL, share_ratio REAL,
  step_ns INTEGER NOT NULL, without_ns INTEGER, err_ns INTEGER, n_steps INTEGER NOT NULL,
  method TEXT NOT NULL, PRIMARY KEY (scope, name)) WITHOUT ROWID;

-- Files that an import read.
CREATE TABLE raw_input (
  input_id INTEGER PRIMARY KEY, file TEXT NOT NULL, format TEXT, outcome TEXT NOT NULL, rank INTEGER,
  n_events INTEGER NOT NULL);
