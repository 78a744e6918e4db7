-- Collectives that were left before they were entered, in order of time.
SELECT c.at_ns, g.name AS "group", c.seq, e.name AS early_host, l.name AS late_host, c.impossible_ns, c.against, c.lifted_ns
FROM raw_contradiction c LEFT JOIN raw_group g USING (group_id)
JOIN raw_host e ON e.host_id = c.early_host_id JOIN raw_host l ON l.host_id = c.late_host_id
ORDER BY c.at_ns, g.name, c.seq;
