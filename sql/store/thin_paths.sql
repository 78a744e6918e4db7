-- Detail is kept of the newest 256 steps and of those that a verdict cites.
UPDATE raw_path SET segments = NULL
WHERE segments IS NOT NULL AND step <= :step - 256 AND NOT EXISTS (
  SELECT 1 FROM raw_verdict v WHERE v.first_step = raw_path.step OR v.last_step = raw_path.step OR EXISTS (
    SELECT 1 FROM json_each(v.evidence) e
    WHERE CASE WHEN e.type = 'object' THEN e.value ->> 'step' END = raw_path.step));
