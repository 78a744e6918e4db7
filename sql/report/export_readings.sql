SELECT g.rank, g.host_id, h.name, g.name, g.at_ns, g.value
FROM raw_gauge g JOIN raw_host h USING (host_id) WHERE g.at_ns BETWEEN :from_ns AND :to_ns
ORDER BY g.name, g.at_ns;
