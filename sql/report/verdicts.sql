SELECT id, class, severity, confidence, culprit AS "culprit:json", onset_ns, first_step, last_step,
       detected_ns - onset_ns AS detected_after_ns,
       -- The onset lies on a host's clock, the detection on the collector's.
       (SELECT CASE WHEN count(*) = count(nullif(coalesce(c.error_ns, CASE WHEN h.same_clock THEN 0 END), 9223372036854775807))
               THEN max(coalesce(c.error_ns, 0)) END
        FROM raw_host h LEFT JOIN raw_clock c ON c.host_id = h.host_id
          AND c.at_ns = (SELECT max(at_ns) FROM raw_clock WHERE host_id = h.host_id)) AS detected_after_err_ns,
       cost_ratio, margin_ns, error_ns, error_kind, sentence,
       evidence AS "evidence:json", rules_out AS "rules_out:json", coverage AS "coverage:json"
FROM finding
ORDER BY CASE severity WHEN 'stuck' THEN 0 WHEN 'wrong' THEN 1 WHEN 'slow' THEN 2 ELSE 3 END,
         cost_ratio DESC NULLS LAST, id;
