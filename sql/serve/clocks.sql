-- The newest estimate of each host; a host that was never aligned has nulls.
SELECT h.name AS host, c.offset_ns, c.error_ns, c.rtt_ns, c.quality, c.soft_ns, c.skew_ppb, c.status,
       h.same_clock AS "same_clock:bool", p.way, p.stamps, p.why
FROM raw_host h
LEFT JOIN raw_clock c ON c.host_id = h.host_id
  AND c.at_ns = (SELECT max(at_ns) FROM raw_clock WHERE host_id = h.host_id)
LEFT JOIN raw_clock_path p ON p.host_id = h.host_id
ORDER BY h.name LIMIT 65536
