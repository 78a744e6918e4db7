-- One verdict a cause: a repeat updates it and keeps when it was first found.
INSERT INTO raw_verdict (key, class, severity, confidence, error_kind, culprit, sentence,
  evidence, rules_out, coverage, first_step, last_step, onset_ns, detected_ns, cost_ratio,
  margin_ns, error_ns)
VALUES (:key, :class, :severity, :confidence, :error_kind, :culprit, :sentence, :evidence,
  :rules_out, :coverage, :first_step, :last_step, :onset_ns, :detected_ns, :cost_ratio,
  :margin_ns, :error_ns)
ON CONFLICT (key) DO UPDATE SET
  class = excluded.class, severity = excluded.severity, confidence = excluded.confidence,
  error_kind = excluded.error_kind, culprit = excluded.culprit, sentence = excluded.sentence,
  evidence = excluded.evidence, rules_out = excluded.rules_out, coverage = excluded.coverage,
  first_step = excluded.first_step, last_step = excluded.last_step, onset_ns = excluded.onset_ns,
  cost_ratio = excluded.cost_ratio, margin_ns = excluded.margin_ns, error_ns = excluded.error_ns
RETURNING verdict_id;
