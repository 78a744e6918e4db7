-- What only imports tell: each format's own tables. Cells that the format did not say are NULL.

-- Profiles of PyTorch (Kineto), by rank. What the device did: exact by step; step NULL = the whole profile, as
-- Holistic Trace Analysis counts it.
CREATE TABLE raw_profile (
  rank INTEGER NOT NULL, rank_from TEXT NOT NULL, n_work INTEGER NOT NULL, n_steps INTEGER NOT NULL,
  n_launched INTEGER NOT NULL, n_early INTEGER NOT NULL, early_ns INTEGER, n_left_out INTEGER NOT NULL,
  cut_ns INTEGER, n_groups_cut INTEGER NOT NULL);
CREATE TABLE raw_profile_breakdown (
  rank INTEGER NOT NULL, step INTEGER, from_ns INTEGER NOT NULL, to_ns INTEGER NOT NULL, n_work INTEGER NOT NULL,
  idle_ns INTEGER NOT NULL, compute_ns INTEGER NOT NULL, communication_ns INTEGER NOT NULL,
  memory_ns INTEGER NOT NULL, overlap_ns INTEGER NOT NULL, compute_only_ns INTEGER NOT NULL,
  communication_only_ns INTEGER NOT NULL, memory_only_ns INTEGER NOT NULL);
-- Kernels of communication with equal arguments.
CREATE TABLE raw_profile_call (
  rank INTEGER NOT NULL, kernel TEXT, collective TEXT, dtype TEXT, in_elements INTEGER, out_elements INTEGER,
  "group" TEXT, group_name TEXT, group_size INTEGER, ranks TEXT, n INTEGER NOT NULL, sum_ns INTEGER NOT NULL,
  first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL);
CREATE TABLE raw_profile_annotation (
  rank INTEGER NOT NULL, name TEXT NOT NULL, place TEXT NOT NULL, n INTEGER NOT NULL, sum_ns INTEGER NOT NULL,
  n_work INTEGER, work_ns INTEGER);
