-- Findings about those steps, or about none; where no onset is known, since they were seen.
SELECT id, class, severity, confidence, sentence, culprit, first_step, last_step, cost_ratio, margin_ns, error_ns, error_kind,
       coalesce(onset_ns, detected_ns, :from_ns) AS at_ns
FROM finding
WHERE :first > :last OR ((first_step IS NULL OR first_step <= :last) AND (last_step IS NULL OR last_step >= :first))
ORDER BY at_ns, id;
