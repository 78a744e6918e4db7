-- Told again as ranks arrive; a replay that saw less never replaces what saw more.
INSERT INTO raw_collective (group_id, seq, op, dtype, bytes, step, first_arrival_ns,
  last_arrival_ns, end_ns, skew_ns, skew_err_ns, last_rank, decided, mismatch, n_expected,
  n_seen, arrivals, gap)
VALUES (:group_id, :seq, :op, :dtype, :bytes, :step, :first_arrival_ns, :last_arrival_ns,
  :end_ns, :skew_ns, :skew_err_ns, :last_rank, :decided, :mismatch, :n_expected, :n_seen,
  :arrivals, :gap)
ON CONFLICT (group_id, seq) DO UPDATE SET
  op = excluded.op, dtype = excluded.dtype, bytes = excluded.bytes, step = excluded.step,
  first_arrival_ns = excluded.first_arrival_ns, last_arrival_ns = excluded.last_arrival_ns,
  end_ns = excluded.end_ns, skew_ns = excluded.skew_ns, skew_err_ns = excluded.skew_err_ns,
  last_rank = excluded.last_rank, decided = excluded.decided, mismatch = excluded.mismatch,
  n_expected = excluded.n_expected, n_seen = excluded.n_seen, arrivals = excluded.arrivals,
  gap = excluded.gap
WHERE excluded.n_seen > n_seen
  OR (excluded.n_seen = n_seen AND (excluded.end_ns IS NOT NULL OR end_ns IS NULL));
