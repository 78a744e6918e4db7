-- Causes: where the time of steps went, over ranks.

-- A call that began on all ranks at once: waits are gaps before it.
ALTER TABLE raw_collective ADD COLUMN gap INTEGER NOT NULL DEFAULT 0;
