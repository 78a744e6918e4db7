-- Causes: where the time of steps went, over ranks.

-- A call that began on all ranks at once: waits are gaps before it.
ALTER TABLE raw_collective ADD COLUMN gap INTEGER NOT NULL DEFAULT 0;

-- The calls of one shape of group, operation, type and power of two of the size. group_id -1: of all
-- groups of that shape. Sums over the calls (bytes, sum_ns) and over calls and ranks (wait_ns, inside_ns).
CREATE TABLE raw_comm_class (
  group_id INTEGER NOT NULL, n_ranks INTEGER NOT NULL, n_hosts INTEGER NOT NULL, op INTEGER NOT NULL,
  dtype INTEGER NOT NULL, size INTEGER NOT NULL, n_groups INTEGER NOT NULL, n INTEGER NOT NULL,
  bytes REAL NOT NULL, sum_ns REAL NOT NULL, min_ns INTEGER NOT NULL, p50_ns INTEGER NOT NULL,
  p95_ns INTEGER NOT NULL, p99_ns INTEGER NOT NULL, max_ns INTEGER NOT NULL, err_ns INTEGER NOT NULL,
  wait_ns REAL NOT NULL, inside_ns REAL NOT NULL, n_copies INTEGER NOT NULL, copy_bytes INTEGER NOT NULL,
  n_layouts INTEGER NOT NULL, peak_gbs REAL,
  PRIMARY KEY (group_id, n_ranks, n_hosts, op, dtype, size)) WITHOUT ROWID;
ALTER TABLE raw_rank_step ADD COLUMN compute_ns INTEGER;
ALTER TABLE raw_rank_step ADD COLUMN idle_ns INTEGER;
ALTER TABLE raw_rank_step ADD COLUMN host_ns INTEGER;
-- What each rank of a pipeline did in a step, on its own clock.
CREATE TABLE raw_stage_step (
  step INTEGER NOT NULL, rank INTEGER NOT NULL, stage INTEGER NOT NULL, pipeline INTEGER NOT NULL,
  n_stages INTEGER NOT NULL, n_micro INTEGER NOT NULL, work_ns INTEGER NOT NULL,
  collective_ns INTEGER NOT NULL, message_ns INTEGER NOT NULL, rest_ns INTEGER NOT NULL,
  wait_ns INTEGER NOT NULL, step_ns INTEGER NOT NULL, theory_ratio REAL NOT NULL,
  PRIMARY KEY (step, rank)) WITHOUT ROWID;
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
-- What the job would do if a part of it was ideal, or it alone was not.
CREATE TABLE raw_what_if (
  scope TEXT NOT NULL, name TEXT NOT NULL, number INTEGER, slowdown_ratio REAL, share_ratio REAL,
  step_ns INTEGER NOT NULL, without_ns INTEGER, err_ns INTEGER, n_steps INTEGER NOT NULL,
  method TEXT NOT NULL, PRIMARY KEY (scope, name)) WITHOUT ROWID;

-- Files that an import read.
CREATE TABLE raw_input (
  input_id INTEGER PRIMARY KEY, file TEXT NOT NULL, format TEXT, outcome TEXT NOT NULL, rank INTEGER,
  n_events INTEGER NOT NULL);
