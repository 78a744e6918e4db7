-- 3 once its collector was ready.
SELECT count(*) FROM sqlite_master WHERE type = 'view' AND name IN ('run', 'rank_step', 'finding');
