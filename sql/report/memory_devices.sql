-- Devices of memory snapshots, at the end.
SELECT rank, device, rank_from, reserved_bytes, allocated_bytes, active_bytes, n_segments AS segments, n_blocks AS blocks,
       (SELECT max(largest_free_bytes) FROM memory_segment g WHERE g.rank = s.rank AND g.device = s.device) AS largest_free_bytes,
       n_history AS events, n_left_out AS left_out, history_from_ns
FROM memory_snapshot s ORDER BY rank, device LIMIT 10000;
