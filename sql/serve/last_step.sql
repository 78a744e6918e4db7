-- hidden: most gradient buckets of the newest step that has any show no collective (NCCL without
-- its plug-in): waiting cannot be told from computing there.
SELECT step, dur_ns, n_ranks,
       coalesce((SELECT 2 * sum(submitted_ns IS NULL) > count(*) FROM raw_bucket
                  WHERE ddp >= 0 AND step = (SELECT max(step) FROM raw_bucket)), 0) AS "hidden:bool"
FROM step ORDER BY step DESC LIMIT 1
