-- The clock estimate beside its hard bound: what the noise says, how fast the offset moves, and how it was come by.
ALTER TABLE raw_clock ADD COLUMN soft_ns INTEGER;
ALTER TABLE raw_clock ADD COLUMN skew_ppb REAL;
ALTER TABLE raw_clock ADD COLUMN status TEXT;
