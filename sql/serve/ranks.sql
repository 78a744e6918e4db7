-- The newest process of each rank; earlier ones were restarted.
SELECT rank, host, local_rank, pid, restart_count, state, CAST(state_at_ns AS TEXT) AS state_at_ns
FROM (SELECT *, row_number() OVER (PARTITION BY rank ORDER BY restart_count DESC, process_id DESC) AS place
      FROM rank_info)
WHERE place = 1 ORDER BY rank
