-- The calls of those steps; of no step, those of that time. In the order of each group.
SELECT v.comm_id, g.group_id, v.seq, v.op, v.dtype, v.bytes, v.step, v.first_arrival_ns, v.last_arrival_ns, v.skew_ns, v.skew_err_ns,
       v.last_rank, v.decided, v.mismatch, v.gap, v.n_expected, v.n_seen, c.arrivals
FROM collective v JOIN raw_group g ON g.name = v.comm_id JOIN raw_collective c ON c.group_id = g.group_id AND c.seq = v.seq
WHERE v.step BETWEEN :first AND :last OR (v.step IS NULL AND v.first_arrival_ns BETWEEN :from_ns AND :to_ns)
ORDER BY g.group_id, v.seq;
