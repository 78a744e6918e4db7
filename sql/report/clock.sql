-- The newest word on each host's clock. The collector's own clock has no error.
WITH newest AS (
  SELECT host, offset_ns, offset_err_ns, quality, offset_soft_ns, skew_ppb, status,
         row_number() OVER (PARTITION BY host ORDER BY at_ns DESC) AS place
  FROM clock_quality)
SELECT h.name AS host,
       (SELECT json_group_array(rank) FROM
         (SELECT DISTINCT rank FROM rank_info WHERE host = h.name ORDER BY rank)) AS "ranks:json",
       coalesce(n.offset_ns, o.offset_ns) AS offset_ns,
       coalesce(n.offset_ns - n.offset_err_ns, o.offset_ns) AS lo_ns,
       coalesce(n.offset_ns + n.offset_err_ns, o.offset_ns) AS hi_ns,
       CASE WHEN h.same_clock THEN 0 ELSE n.offset_err_ns END AS error_ns,
       CASE WHEN h.same_clock THEN 0 ELSE n.offset_soft_ns END AS soft_ns,
       CASE WHEN h.same_clock THEN 0 ELSE round(n.skew_ppb, 1) END AS skew_ppb, h.same_clock AS "same_clock:bool",
       h.same_clock OR coalesce(n.status IN ('anchored', 'one-sided', 'coasting'), 0) AS "drift_known:bool",
       CASE WHEN h.same_clock THEN 'anchored' ELSE n.status END AS status,
       coalesce(n.quality, CASE WHEN h.same_clock THEN 'good' ELSE 'refused' END) AS quality
FROM raw_host h
LEFT JOIN newest n ON n.host = h.name AND n.place = 1
LEFT JOIN (SELECT fleet_minus_raw_ns AS offset_ns FROM raw_run LIMIT 1) o ON h.same_clock
ORDER BY h.name;
