-- The critical path of one step, as it was told.
SELECT n, rank, host, kind, name, comm_id, seq, bucket, from_rank, begin_ns, end_ns, dur_ns, err_ns, excess_ns, held_ns,
       held_err_ns, undecided AS "undecided:bool", n_joined
FROM critical_path WHERE step = :step ORDER BY n;
