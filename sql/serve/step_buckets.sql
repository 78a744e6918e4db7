SELECT rank, ddp, bucket, micro, bytes, seq, CAST(ready_ns AS TEXT) AS ready_ns,
       CAST(submitted_ns AS TEXT) AS submitted_ns, CAST(started_ns AS TEXT) AS started_ns,
       CAST(reduced_ns AS TEXT) AS reduced_ns, CAST(applied_ns AS TEXT) AS applied_ns, err_ns
FROM bucket_stage WHERE step = :step ORDER BY rank, ddp, micro, bucket LIMIT :limit
