-- The run in sixty parts: the worst error of each host in each, and how often nothing could be decided.
WITH span AS (SELECT min(at_ns) AS first_ns, max(at_ns) + 1 AS end_ns FROM raw_clock),
part AS (SELECT c.*, (c.at_ns - span.first_ns) * 60 / (span.end_ns - span.first_ns) AS part,
                span.first_ns, span.end_ns - span.first_ns AS span_ns
         FROM raw_clock c, span)
SELECT part.first_ns + part.part * part.span_ns / 60 AS at_ns, h.name AS host,
       count(*) AS n_estimates, sum(part.quality = 'refused') AS n_refused,
       max(part.error_ns) AS worst_error_ns, max(part.soft_ns) AS worst_soft_ns,
       cast(avg(part.offset_ns - h.offset_ns) AS INTEGER) + h.offset_ns AS offset_ns,
       round(avg(part.skew_ppb), 1) AS skew_ppb
FROM part JOIN raw_host h USING (host_id)
GROUP BY part.part, part.host_id
ORDER BY part.part, h.name;
