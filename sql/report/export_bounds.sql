-- The whole of a run: its steps, and from when till when anything was.
SELECT s.first, s.last,
       min(coalesce(s.from_ns, c.from_ns, r.started_ns), coalesce(c.from_ns, s.from_ns, r.started_ns)) AS from_ns,
       max(coalesce(s.to_ns, c.to_ns, r.started_ns), coalesce(c.to_ns, s.to_ns, r.started_ns), coalesce(r.ended_ns, r.started_ns)) AS to_ns,
       r.started_ns
FROM (SELECT started_ns, ended_ns FROM run LIMIT 1) r,
     (SELECT min(step) AS first, max(step) AS last, min(begin_ns) AS from_ns, max(begin_ns + dur_ns) AS to_ns FROM step) s,
     (SELECT min(first_arrival_ns) AS from_ns, max(coalesce(end_ns, last_arrival_ns)) AS to_ns FROM collective) c;
