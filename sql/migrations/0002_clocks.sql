-- Clock probes: which way an exchange went, snapshots of a host's clocks, what was done to its wall
-- clock, and how probes fare.

-- 0 in the stream of events, 1 UDP with the programs' own times, 2 UDP stamped by the kernels.
ALTER TABLE raw_exchange ADD COLUMN way INTEGER NOT NULL DEFAULT 0;

-- All clocks of a host within half_ns of host_ns: what a foreign stamp is converted by.
CREATE TABLE raw_snapshot (
  host_id INTEGER NOT NULL, host_ns INTEGER NOT NULL, half_ns INTEGER NOT NULL,
  mono_ns INTEGER NOT NULL, real_ns INTEGER NOT NULL, boot_ns INTEGER NOT NULL,
  tick_source INTEGER, tick INTEGER, PRIMARY KEY (host_id, host_ns)) WITHOUT ROWID;

-- Between two snapshots a clock of the host moved against the one that nobody steps.
CREATE TABLE raw_clock_step (
  host_id INTEGER NOT NULL, host_from_ns INTEGER NOT NULL, host_to_ns INTEGER NOT NULL,
  kind TEXT NOT NULL,        -- wall, suspend, raw
  step_ns INTEGER NOT NULL, error_ns INTEGER NOT NULL,
  PRIMARY KEY (host_id, host_from_ns, kind)) WITHOUT ROWID;

CREATE TABLE raw_clock_path (
  host_id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL,
  way TEXT NOT NULL,         -- udp, stream
  stamps TEXT NOT NULL,      -- kernel, program
  why TEXT NOT NULL,         -- why it is not udp; '' = it is
  n_sent INTEGER NOT NULL, n_received INTEGER NOT NULL, n_answered INTEGER NOT NULL,
  n_exchanges INTEGER NOT NULL, n_refused INTEGER NOT NULL, wish INTEGER NOT NULL);

-- The clock estimate beside its hard bound: what the noise says, how fast the offset moves, and how it was come by.
ALTER TABLE raw_clock ADD COLUMN soft_ns INTEGER;
ALTER TABLE raw_clock ADD COLUMN skew_ppb REAL;
ALTER TABLE raw_clock ADD COLUMN status TEXT;

-- Exchanges between two hosts, on their own clocks, and what the estimates make of them.
CREATE TABLE raw_peer_exchange (
  host_id INTEGER NOT NULL, peer_id INTEGER NOT NULL, host_t0_ns INTEGER NOT NULL,
  peer_t1_ns INTEGER NOT NULL, peer_t2_ns INTEGER NOT NULL, host_t3_ns INTEGER NOT NULL,
  at_ns INTEGER NOT NULL, surplus_ns INTEGER, error_ns INTEGER, contradicts INTEGER NOT NULL,
  PRIMARY KEY (host_id, host_t0_ns, peer_id)) WITHOUT ROWID;

-- Collectives that were left before they were entered, and what collectives say about hosts' clocks.
CREATE TABLE raw_contradiction (
  group_id INTEGER NOT NULL, seq INTEGER NOT NULL, early_host_id INTEGER NOT NULL,
  late_host_id INTEGER NOT NULL, at_ns INTEGER NOT NULL, impossible_ns INTEGER NOT NULL,
  against TEXT NOT NULL,     -- own clock, probes, collectives
  lifted_ns INTEGER, PRIMARY KEY (group_id, seq)) WITHOUT ROWID;

CREATE TABLE raw_clock_pair (
  host_id INTEGER PRIMARY KEY, reference_id INTEGER NOT NULL, at_ns INTEGER NOT NULL,
  correction_ns INTEGER NOT NULL, width_ns INTEGER NOT NULL, probe_width_ns INTEGER NOT NULL,
  soft_ns INTEGER, basis TEXT NOT NULL); -- exits, bounds, probes, nothing
