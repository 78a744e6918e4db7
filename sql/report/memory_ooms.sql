-- Allocations that were refused, the newest of each rank and device first.
SELECT rank, device, seq, at_ns, asked_bytes, device_free_bytes, allocated_bytes, allocated_err_bytes, reserved_bytes,
       largest_free_bytes, capped, site, n_held, held_bytes, cause, sentence
FROM memory_oom ORDER BY rank, device, seq DESC LIMIT 10000;
