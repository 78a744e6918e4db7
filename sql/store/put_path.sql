-- A step is told once; a collector that starts again may tell it again.
INSERT INTO raw_path (step, begin_ns, dur_ns, dur_err_ns, complete, segments)
VALUES (:step, :begin_ns, :dur_ns, :dur_err_ns, :complete, :segments)
ON CONFLICT (step) DO UPDATE SET
  begin_ns = excluded.begin_ns, dur_ns = excluded.dur_ns, dur_err_ns = excluded.dur_err_ns,
  complete = excluded.complete, segments = excluded.segments;
