-- A gradient bucket of a rank in a step.
INSERT INTO raw_bucket (step, rank, ddp, micro, bucket, bytes, seq, ready_ns, submitted_ns,
  started_ns, reduced_ns, applied_ns, err_ns, group_id)
VALUES (:step, :rank, :ddp, :micro, :bucket, :bytes, :seq, :ready_ns, :submitted_ns, :started_ns,
  :reduced_ns, :applied_ns, :err_ns, :group_id)
ON CONFLICT (step, rank, ddp, micro, bucket) DO UPDATE SET
  bytes = excluded.bytes, seq = excluded.seq, ready_ns = excluded.ready_ns,
  submitted_ns = excluded.submitted_ns, started_ns = excluded.started_ns,
  reduced_ns = excluded.reduced_ns, applied_ns = excluded.applied_ns, err_ns = excluded.err_ns,
  group_id = excluded.group_id;
