-- The steps that something of lies between two moments.
SELECT min(step) AS first, max(step) AS last FROM step WHERE begin_ns + dur_ns > :from_ns AND begin_ns < :to_ns;
