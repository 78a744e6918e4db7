-- Readings: metric, unit, value, attributes (JSON; NULL values are left away). Of the newest 20 steps where it is about steps.
WITH newest AS (SELECT max(step) - 20 AS step FROM step),
     hosts AS (SELECT rank, host, max(process_id) FROM rank_info GROUP BY rank),
     ranks AS (SELECT s.rank, i.host, avg(s.excess_ratio) AS excess_ratio, avg(s.self_ns) / 1e9 AS self_s, avg(s.wait_ns) / 1e9 AS wait_s,
                      avg(s.exposed_comm_ns) / 1e9 AS exposed_s, avg(s.input_wait_ns) / 1e9 AS input_s
               FROM rank_step s JOIN hosts i USING (rank) WHERE s.step > (SELECT step FROM newest) GROUP BY s.rank)
SELECT 'syncline.rank.excess' AS metric, '1' AS unit, excess_ratio AS value, json_object('rank', rank, 'host.name', host) AS "attributes:json" FROM ranks WHERE excess_ratio IS NOT NULL
UNION ALL SELECT 'syncline.rank.self_time', 's', self_s, json_object('rank', rank, 'host.name', host) FROM ranks WHERE self_s IS NOT NULL
UNION ALL SELECT 'syncline.rank.wait_time', 's', wait_s, json_object('rank', rank, 'host.name', host) FROM ranks WHERE wait_s IS NOT NULL
UNION ALL SELECT 'syncline.rank.exposed_communication', 's', exposed_s, json_object('rank', rank, 'host.name', host) FROM ranks WHERE exposed_s IS NOT NULL
UNION ALL SELECT 'syncline.rank.input_wait', 's', input_s, json_object('rank', rank, 'host.name', host) FROM ranks WHERE input_s IS NOT NULL
UNION ALL SELECT 'syncline.collective.skew', 's', max(skew_ns) / 1e9, json_object('communicator', comm_id, 'operation', op) FROM collective
          WHERE decided AND skew_ns IS NOT NULL AND step > (SELECT step FROM newest) GROUP BY comm_id, op
UNION ALL SELECT 'syncline.collective.bus_bandwidth', 'By/s', busbw_gbs * 1e9, json_object('operation', op, 'dtype', dtype, 'ranks', n_ranks, 'hosts', n_hosts, 'size_class', size_class_bytes)
          FROM comm_class WHERE busbw_gbs IS NOT NULL
UNION ALL SELECT 'syncline.clock.error', 's', error_ns / 1e9, json_object('host.name', host) FROM (SELECT host, offset_err_ns AS error_ns, max(at_ns) FROM clock_quality WHERE offset_err_ns < 9223372036854775807 GROUP BY host)
UNION ALL SELECT 'syncline.findings', '{finding}', count(*), json_object('class', class, 'severity', severity, 'confidence', confidence) FROM finding GROUP BY class, severity, confidence
UNION ALL SELECT 'syncline.finding.cost', '1', cost_ratio, json_object('class', class, 'severity', severity, 'id', id) FROM finding WHERE cost_ratio IS NOT NULL
