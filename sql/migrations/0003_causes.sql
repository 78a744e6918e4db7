-- Causes: where the time of steps went, over ranks.
ALTER TABLE raw_rank_step ADD COLUMN compute_ns INTEGER;
ALTER TABLE raw_rank_step ADD COLUMN idle_ns INTEGER;
ALTER TABLE raw_rank_step ADD COLUMN host_ns INTEGER;
