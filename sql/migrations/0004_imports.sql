-- What only imports tell: each format's own tables. Cells that the format did not say are NULL.

-- PyTorch's Flight Recorder: each rank's status in each group, and its last calls.
CREATE TABLE raw_flight_group (
  rank INTEGER NOT NULL, comm_id TEXT NOT NULL, description TEXT, size INTEGER, pg_id INTEGER,
  last_enqueued INTEGER, last_started INTEGER, last_completed INTEGER, n_calls INTEGER NOT NULL, n_pending INTEGER NOT NULL,
  PRIMARY KEY (rank, comm_id)) WITHOUT ROWID;
CREATE TABLE raw_flight_entry (
  rank INTEGER NOT NULL, record_id INTEGER, comm_id TEXT NOT NULL, seq INTEGER, kind TEXT NOT NULL, op TEXT, state TEXT,
  created_ns INTEGER, seen_started_ns INTEGER, seen_completed_ns INTEGER, duration_ns REAL, timeout_ns INTEGER,
  dtype TEXT, in_shapes TEXT, out_shapes TEXT, thread TEXT, frame TEXT, frames TEXT);
