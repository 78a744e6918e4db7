-- What the live collector would know by itself, from a finished run.
SELECT (SELECT max(begin_ns + dur_ns) FROM raw_step) AS last_event_ns,
       (SELECT count(*) FROM raw_agent) AS n_agents,
       (SELECT count(DISTINCT rank) FROM raw_process) AS n_ranks_seen,
       (SELECT coalesce(max(world_size), 0) FROM raw_process) AS n_ranks_expected,
       (SELECT coalesce(sum(n_events), 0) FROM raw_chunk) AS n_events,
       (SELECT coalesce(sum(n), 0) FROM drop_count) AS n_drops,
       (SELECT coalesce(sum(n), 0) FROM drop_count WHERE place IN ('ring', 'gap', 'spool')) AS n_events_lost,
       (SELECT count(*) FROM raw_host) AS n_hosts,
       (SELECT count(*) FROM raw_host h WHERE NOT h.same_clock
          AND NOT EXISTS (SELECT 1 FROM raw_clock c WHERE c.host_id = h.host_id)) AS n_hosts_unaligned,
       -- A host that shares the collector's clock needs no fit: its error is the ticks' conversion.
       (SELECT max(coalesce((SELECT error_ns FROM raw_clock c WHERE c.host_id = h.host_id
                             ORDER BY at_ns DESC LIMIT 1),
                   CASE WHEN h.same_clock THEN (SELECT max(tick_error_ns) FROM raw_process p
                                                 WHERE p.host_id = h.host_id) END))
          FROM raw_host h) AS clock_error_ns,
       (SELECT avg(cpu_ns * 1.0 / (last_seen_ns - first_seen_ns)) FROM raw_agent
         WHERE cpu_ns IS NOT NULL AND last_seen_ns > first_seen_ns) AS agent_cpu_ratio,
       (SELECT count(*) FROM raw_clock_path WHERE way = 'stream') AS n_hosts_by_stream
