-- Base tables of a catalogue, one catalogue a run. raw_* is syncline's own and may change with
-- any migration; the views of views.sql are the contract. Times: fleet nanoseconds since 1970
-- unless a column says host_ (CLOCK_MONOTONIC_RAW of that host).

CREATE TABLE raw_meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE raw_run (
  run_id TEXT PRIMARY KEY, name TEXT NOT NULL, world_size INTEGER,
  started_ns INTEGER NOT NULL, ended_ns INTEGER,
  fleet_minus_raw_ns INTEGER NOT NULL,   -- the collector's own clock: fleet = RAW + this …
  boot_id TEXT NOT NULL,                 -- … while it runs on this boot
  time_ns_inode INTEGER NOT NULL,        -- … and in this time namespace
  layout TEXT NOT NULL DEFAULT '{}');

CREATE TABLE raw_host (
  host_id INTEGER PRIMARY KEY, name TEXT NOT NULL, boot_id TEXT NOT NULL,
  time_ns_inode INTEGER NOT NULL, same_clock INTEGER NOT NULL,
  offset_ns INTEGER NOT NULL,   -- fleet - RAW: exact with same_clock, else a first guess
  UNIQUE (boot_id, time_ns_inode, name));

CREATE TABLE raw_agent (
  agent INTEGER PRIMARY KEY, agent_id BLOB NOT NULL UNIQUE, host_id INTEGER NOT NULL,
  version TEXT NOT NULL, first_seen_ns INTEGER, last_seen_ns INTEGER,
  n_given_up INTEGER NOT NULL DEFAULT 0, cpu_ns INTEGER, rss_bytes INTEGER);

-- Batches that are committed: agents resend after a lost reply, the second copy is not news.
CREATE TABLE raw_batch (
  agent INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (agent, seq)) WITHOUT ROWID;

CREATE TABLE raw_process (
  process_id INTEGER PRIMARY KEY, host_id INTEGER NOT NULL, agent INTEGER NOT NULL,
  unique_id INTEGER NOT NULL, pid INTEGER NOT NULL,
  rank INTEGER, local_rank INTEGER, world_size INTEGER, restart_count INTEGER,
  host_started_ns INTEGER NOT NULL, tick_source INTEGER, tick_error_ns INTEGER,
  state TEXT NOT NULL DEFAULT 'alive',     -- alive, left, died
  state_at_ns INTEGER, exit_code INTEGER, signal INTEGER,
  n_dropped INTEGER NOT NULL DEFAULT 0, n_text_dropped INTEGER NOT NULL DEFAULT 0,
  n_names_dropped INTEGER NOT NULL DEFAULT 0, n_gap INTEGER NOT NULL DEFAULT 0,
  UNIQUE (host_id, unique_id));

CREATE TABLE raw_name (
  process_id INTEGER NOT NULL, id INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (process_id, id)) WITHOUT ROWID;

-- Raw events as column chunks (proto/chunk.h).
CREATE TABLE raw_chunk (
  chunk_id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL, ring INTEGER NOT NULL,
  first_index INTEGER NOT NULL, n_events INTEGER NOT NULL, kinds INTEGER NOT NULL,
  host_t_min_ns INTEGER NOT NULL, host_t_max_ns INTEGER NOT NULL, data BLOB NOT NULL);

-- Which events of each ring are stored, as ranges [lo, hi). One row a ring unless events went
-- missing in between. Kept beside the chunks so that a restart need not read them.
CREATE TABLE raw_ring (
  process_id INTEGER NOT NULL, ring INTEGER NOT NULL, lo INTEGER NOT NULL, hi INTEGER NOT NULL,
  PRIMARY KEY (process_id, ring, lo)) WITHOUT ROWID;

CREATE TABLE raw_exchange (
  host_id INTEGER NOT NULL, host_t0_ns INTEGER NOT NULL, t1_ns INTEGER NOT NULL,
  t2_ns INTEGER NOT NULL, host_t3_ns INTEGER NOT NULL, PRIMARY KEY (host_id, host_t0_ns)) WITHOUT ROWID;
CREATE TABLE raw_clock (
  host_id INTEGER NOT NULL, at_ns INTEGER NOT NULL, offset_ns INTEGER NOT NULL,
  error_ns INTEGER NOT NULL, rtt_ns INTEGER NOT NULL, quality TEXT NOT NULL,
  PRIMARY KEY (host_id, at_ns)) WITHOUT ROWID;

CREATE TABLE raw_group (
  group_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, ranks TEXT, ranks_known INTEGER NOT NULL);

CREATE TABLE raw_step (
  step INTEGER PRIMARY KEY, begin_ns INTEGER NOT NULL, dur_ns INTEGER NOT NULL,
  dur_err_ns INTEGER NOT NULL, n_ranks INTEGER NOT NULL, slowest_rank INTEGER,
  complete INTEGER NOT NULL);

CREATE TABLE raw_rank_step (
  step INTEGER NOT NULL, rank INTEGER NOT NULL, begin_ns INTEGER NOT NULL,
  begin_err_ns INTEGER NOT NULL, dur_ns INTEGER NOT NULL, self_ns INTEGER,
  exposed_comm_ns INTEGER, wait_ns INTEGER, wait_err_ns INTEGER, input_wait_ns INTEGER,
  fwd_ns INTEGER, bwd_ns INTEGER, opt_ns INTEGER, eval_ns INTEGER,
  excess_ratio REAL, n_peers INTEGER NOT NULL, coverage REAL NOT NULL,
  dur_err_ns INTEGER NOT NULL,
  PRIMARY KEY (step, rank)) WITHOUT ROWID;

-- arrivals: JSON [[rank, enter - first_arrival_ns, exit - first_arrival_ns or null, err_ns], …]
-- by rank: one row a collective keeps 300,000 arrivals a second within reach of SQLite, and any
-- client opens it through the view.
CREATE TABLE raw_collective (
  group_id INTEGER NOT NULL, seq INTEGER NOT NULL, op INTEGER NOT NULL, dtype INTEGER NOT NULL,
  bytes INTEGER NOT NULL, step INTEGER, first_arrival_ns INTEGER NOT NULL,
  last_arrival_ns INTEGER NOT NULL, end_ns INTEGER, skew_ns INTEGER NOT NULL,
  skew_err_ns INTEGER NOT NULL, last_rank INTEGER, decided INTEGER NOT NULL,
  mismatch INTEGER NOT NULL, n_expected INTEGER, n_seen INTEGER NOT NULL, arrivals TEXT NOT NULL,
  PRIMARY KEY (group_id, seq)) WITHOUT ROWID;
-- "Which collectives had this step" is asked at every click; steps come in order, so the index
-- grows at its end.
CREATE INDEX raw_collective_step ON raw_collective (step);

CREATE TABLE raw_bucket (
  step INTEGER NOT NULL, rank INTEGER NOT NULL, ddp INTEGER NOT NULL, micro INTEGER NOT NULL,
  bucket INTEGER NOT NULL, bytes INTEGER NOT NULL, seq INTEGER, ready_ns INTEGER,
  submitted_ns INTEGER, started_ns INTEGER, reduced_ns INTEGER, applied_ns INTEGER,
  err_ns INTEGER NOT NULL, PRIMARY KEY (step, rank, ddp, micro, bucket)) WITHOUT ROWID;

CREATE TABLE raw_verdict (
  verdict_id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, class TEXT NOT NULL,
  severity TEXT NOT NULL, confidence TEXT NOT NULL, error_kind TEXT NOT NULL,
  culprit TEXT NOT NULL, sentence TEXT NOT NULL, evidence TEXT NOT NULL, rules_out TEXT NOT NULL,
  coverage TEXT NOT NULL, first_step INTEGER, last_step INTEGER, onset_ns INTEGER,
  detected_ns INTEGER, cost_ratio REAL, margin_ns INTEGER, error_ns INTEGER);

CREATE TABLE raw_log (
  log_id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, err_ns INTEGER NOT NULL,
  process_id INTEGER, rank INTEGER, kind TEXT NOT NULL,  -- log, exception, notice
  level INTEGER NOT NULL, logger TEXT NOT NULL, text TEXT NOT NULL);

CREATE TABLE raw_record (
  record_id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, process_id INTEGER NOT NULL,
  rank INTEGER, category TEXT NOT NULL, fields TEXT NOT NULL);

CREATE TABLE raw_env (
  process_id INTEGER NOT NULL, rank INTEGER, key TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (process_id, key)) WITHOUT ROWID;

CREATE TABLE raw_gauge (
  at_ns INTEGER NOT NULL, host_id INTEGER NOT NULL, rank INTEGER, name TEXT NOT NULL, value REAL NOT NULL);
CREATE INDEX raw_gauge_name ON raw_gauge (name, at_ns);

CREATE TABLE raw_heat_tile (
  metric INTEGER NOT NULL, baseline INTEGER NOT NULL, agg INTEGER NOT NULL, zs INTEGER NOT NULL,
  zr INTEGER NOT NULL, x INTEGER NOT NULL, y INTEGER NOT NULL, rev INTEGER NOT NULL,
  data BLOB NOT NULL, PRIMARY KEY (metric, baseline, agg, zs, zr, x, y)) WITHOUT ROWID;

CREATE TABLE doc (view TEXT NOT NULL, "column" TEXT NOT NULL, unit TEXT NOT NULL, meaning TEXT NOT NULL,
  PRIMARY KEY (view, "column")) WITHOUT ROWID;
