SELECT id, class, severity, confidence, culprit AS "culprit:json", onset_ns, first_step, last_step,
       detected_ns - onset_ns AS detected_after_ns, cost_ratio, margin_ns, error_ns, error_kind, sentence,
       evidence AS "evidence:json", rules_out AS "rules_out:json", coverage AS "coverage:json"
FROM finding
ORDER BY CASE severity WHEN 'stuck' THEN 0 WHEN 'wrong' THEN 1 WHEN 'slow' THEN 2 ELSE 3 END,
         cost_ratio DESC NULLS LAST, id;
