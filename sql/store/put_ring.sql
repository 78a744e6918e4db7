-- The range that the newest chunk extended.
INSERT INTO raw_ring (process_id, ring, lo, hi)
VALUES (:process_id, :ring, :lo, :hi)
ON CONFLICT (process_id, ring, lo) DO UPDATE SET hi = excluded.hi;
