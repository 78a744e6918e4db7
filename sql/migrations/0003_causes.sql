-- Causes: where the time of steps went, over ranks.

-- The critical path of each step. segments: JSON [[rank, host_id, kind, name, group_id, seq, from_rank,
-- begin - begin_ns, dur, err, excess, held, held_err, undecided, n_joined, bucket], …] in the order of time; NULL where it
-- was dropped: `syncline path` makes it anew from the events.
CREATE TABLE raw_path (
  step INTEGER PRIMARY KEY, begin_ns INTEGER NOT NULL, dur_ns INTEGER NOT NULL,
  dur_err_ns INTEGER NOT NULL, complete INTEGER NOT NULL, segments TEXT);
CREATE INDEX raw_path_kept ON raw_path (step) WHERE segments IS NOT NULL;

-- What of it was whose, of every step. group_id, bucket -1 = none.
CREATE TABLE raw_blame (
  step INTEGER NOT NULL, rank INTEGER NOT NULL, host_id INTEGER NOT NULL, kind TEXT NOT NULL,
  name TEXT NOT NULL, group_id INTEGER NOT NULL, bucket INTEGER NOT NULL,
  n INTEGER NOT NULL, path_ns INTEGER NOT NULL,
  excess_ns INTEGER, held_ns INTEGER NOT NULL, undecided_ns INTEGER NOT NULL,
  PRIMARY KEY (step, rank, kind, name, group_id, bucket)) WITHOUT ROWID;

-- Calls of devices have stages too: ddp -1, bucket = place in the step.
ALTER TABLE raw_bucket ADD COLUMN group_id INTEGER;
