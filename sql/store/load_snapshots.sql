-- The newest of each host, against which its next one is held.
SELECT s.host_id, s.host_ns, s.half_ns, s.mono_ns, s.real_ns, s.boot_ns, s.tick_source, s.tick
FROM raw_host h JOIN raw_snapshot s ON s.host_id = h.host_id
  AND s.host_ns = (SELECT max(host_ns) FROM raw_snapshot WHERE host_id = h.host_id)
ORDER BY s.host_id;
