-- What the spool gave up shows as a gap as soon as something newer arrives: the
-- larger of the two is what was lost, not their sum.
SELECT (SELECT world_size FROM run) AS ranks_expected,
       (SELECT count(DISTINCT rank) FROM rank_info) AS ranks_seen,
       (SELECT count(*) FROM (SELECT state, max(process_id) FROM rank_info GROUP BY rank)
        WHERE state = 'alive') AS ranks_open,
       (SELECT coalesce(sum(n_events), 0) FROM raw_chunk) AS events,
       coalesce(sum(n) FILTER (WHERE place = 'ring'), 0)
         + max(coalesce(sum(n) FILTER (WHERE place = 'gap'), 0),
               coalesce(sum(n) FILTER (WHERE place = 'spool'), 0)) AS events_lost,
       coalesce(sum(n) FILTER (WHERE place IN ('text', 'names')), 0) AS texts_lost,
       coalesce(sum(n) FILTER (WHERE place = 'late'), 0) AS events_late,
       (SELECT count(*) FROM step WHERE NOT complete) AS steps_incomplete,
       (SELECT count(*) FROM bucket_stage WHERE ddp IS NOT NULL) AS buckets,
       (SELECT count(*) FROM bucket_stage WHERE ddp IS NOT NULL AND submitted_ns IS NULL) AS buckets_unseen
FROM drop_count;
