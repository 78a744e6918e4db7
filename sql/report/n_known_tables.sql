-- 3 for a catalogue of ours.
SELECT count(*) FROM sqlite_master
WHERE type = 'table' AND name IN ('raw_meta', 'raw_run', 'raw_rank_step');
