-- arrivals leaves as it is stored: [[rank, enter, exit or null, err, wait_err(, wait)], ...] after first_arrival_ns.
SELECT v.comm_id, v.seq, v.op, v.dtype, v.bytes, v.skew_ns, v.skew_err_ns, v.last_rank, v.decided,
       v.mismatch, v.n_expected, v.n_seen, v.first_arrival_ns, v.last_arrival_ns, c.arrivals
FROM collective v
JOIN raw_collective c
  ON c.group_id = (SELECT group_id FROM raw_group WHERE name = v.comm_id) AND c.seq = v.seq
WHERE v.step = :step
ORDER BY v.first_arrival_ns, v.comm_id, v.seq
LIMIT :limit
