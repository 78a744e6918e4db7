-- What was known of each host's clock around that time, and the last that was known before.
SELECT host_id, at_ns, offset_ns FROM raw_clock c
WHERE at_ns BETWEEN (SELECT coalesce(max(at_ns), :from_ns - 60000000000) FROM raw_clock WHERE host_id = c.host_id AND at_ns < :from_ns)
                AND (SELECT coalesce(min(at_ns), :to_ns + 60000000000) FROM raw_clock WHERE host_id = c.host_id AND at_ns > :to_ns)
ORDER BY host_id, at_ns;
