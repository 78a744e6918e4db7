-- How much lies between :first and :last, or at that time. Of a chunk that lies only partly in it, as much as its time does.
SELECT (SELECT count(*) FROM step WHERE step BETWEEN :first AND :last) AS n_steps,
       (SELECT count(*) FROM rank_step WHERE step BETWEEN :first AND :last) AS n_rank_steps,
       c.n_calls, c.n_arrivals,
       (SELECT count(*) FROM gauge WHERE at_ns BETWEEN :from_ns AND :to_ns) AS n_readings,
       (SELECT count(*) FROM finding) AS n_findings,
       (SELECT CAST(coalesce(sum(k.n_events * min(1.0, (1.0 + min(k.host_t_max_ns + o.offset_ns, :to_ns) - max(k.host_t_min_ns + o.offset_ns, :from_ns))
                                   / (1.0 + k.host_t_max_ns - k.host_t_min_ns))), 0) AS INTEGER)
        FROM raw_chunk k JOIN raw_process p USING (process_id) JOIN (
          SELECT h.host_id, CASE WHEN h.same_clock THEN h.offset_ns ELSE coalesce((SELECT w.offset_ns FROM raw_clock w
                   WHERE w.host_id = h.host_id ORDER BY w.at_ns DESC LIMIT 1), h.offset_ns) END AS offset_ns FROM raw_host h) o USING (host_id)
        WHERE p.rank IS NOT NULL AND k.host_t_max_ns + o.offset_ns >= :from_ns AND k.host_t_min_ns + o.offset_ns <= :to_ns) AS n_events
FROM (SELECT count(*) AS n_calls, coalesce(sum(n_seen), 0) AS n_arrivals FROM (
        SELECT n_seen FROM raw_collective WHERE step BETWEEN :first AND :last
        UNION ALL SELECT n_seen FROM raw_collective WHERE step IS NULL AND first_arrival_ns BETWEEN :from_ns AND :to_ns)) c;
