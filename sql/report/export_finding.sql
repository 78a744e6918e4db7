-- What a finding is about.
SELECT first_step AS first, last_step AS last, culprit AS "culprit:json", onset_ns, detected_ns FROM finding WHERE id = :id;
