-- Who came last to each call by the likeliest offsets; proven where decided. The first 1000 by group; the view has all.
SELECT c.comm_id AS "group", c.seq, c.op || '#' || c.seq AS call, c.step, c.latest_rank AS rank, c.skew_ns,
       c.skew_err_ns AS error_ns, c.decided AS "decided:bool"
FROM (SELECT r.group_id, r.seq, g.name FROM raw_collective r JOIN raw_group g USING (group_id)
      ORDER BY r.group_id, r.seq LIMIT 1000) r
JOIN collective c ON c.seq = r.seq AND c.comm_id = r.name
WHERE c.latest_rank IS NOT NULL ORDER BY r.group_id, r.seq;
