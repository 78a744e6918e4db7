-- Each host's clock: its newest estimate, how bad it ever was, how its probes go, and how far its wall clock is off.
WITH newest AS (
  SELECT host_id, at_ns, offset_ns, error_ns, soft_ns, skew_ppb, status, quality,
         max(error_ns) OVER host AS worst_error_ns,
         sum(quality = 'refused') OVER host AS n_refused_estimates,
         row_number() OVER (PARTITION BY host_id ORDER BY at_ns DESC) AS place
  FROM raw_clock WINDOW host AS (PARTITION BY host_id)),
here AS (SELECT fleet_minus_raw_ns AS offset_ns FROM raw_run LIMIT 1)
SELECT h.name AS host,
       (SELECT json_group_array(rank) FROM
         (SELECT DISTINCT rank FROM rank_info WHERE host = h.name ORDER BY rank)) AS "ranks:json",
       h.same_clock AS "same_clock:bool",
       n.at_ns,
       coalesce(n.offset_ns, here.offset_ns) AS offset_ns,
       CASE WHEN h.same_clock THEN 0 ELSE round(n.skew_ppb, 1) END AS skew_ppb,
       CASE WHEN h.same_clock THEN 0 ELSE n.error_ns END AS error_ns,
       CASE WHEN h.same_clock THEN 0 ELSE n.worst_error_ns END AS worst_error_ns,
       CASE WHEN h.same_clock THEN 0 ELSE n.soft_ns END AS soft_ns,
       CASE WHEN h.same_clock THEN 'anchored' ELSE coalesce(n.status, 'void') END AS status,
       coalesce(n.quality, CASE WHEN h.same_clock THEN 'good' ELSE 'refused' END) AS quality,
       coalesce(n.n_refused_estimates, 0) AS n_refused_estimates,
       p.way, p.stamps, p.why, p.n_sent, p.n_answered, p.n_exchanges, p.n_refused,
       (SELECT s.real_ns - s.host_ns FROM raw_snapshot s WHERE s.host_id = h.host_id
        ORDER BY s.host_ns DESC LIMIT 1) - coalesce(n.offset_ns, here.offset_ns) AS wall_ns
FROM raw_host h
LEFT JOIN newest n ON n.host_id = h.host_id AND n.place = 1
LEFT JOIN here ON h.same_clock
LEFT JOIN raw_clock_path p ON p.host_id = h.host_id
ORDER BY h.name;
