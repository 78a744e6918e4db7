-- How far each rank was in the groups that somebody is in a call of, by dumps.
SELECT rank, comm_id AS "group", description, size, last_enqueued, last_started, last_completed, n_calls AS calls,
       n_pending AS pending
FROM flight_group
WHERE comm_id IN (SELECT comm_id FROM flight_group WHERE n_pending > 0)
ORDER BY comm_id, rank LIMIT 10000;
