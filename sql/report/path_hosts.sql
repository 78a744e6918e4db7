-- Hosts with the newest word on their clocks; whose clock is the collector's own has no other.
SELECT host_id, name, same_clock, offset_ns,
       coalesce((SELECT c.offset_ns FROM raw_clock c WHERE c.host_id = h.host_id ORDER BY c.at_ns DESC LIMIT 1), offset_ns)
FROM raw_host h ORDER BY host_id;
