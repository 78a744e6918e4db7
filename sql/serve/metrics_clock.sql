SELECT (SELECT error_ns FROM raw_clock c WHERE c.host_id = h.host_id ORDER BY at_ns DESC LIMIT 1) / 1e9 AS error_s
FROM raw_host h WHERE error_s IS NOT NULL ORDER BY error_s
