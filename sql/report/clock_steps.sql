-- What was done to the clocks of hosts, in order of time.
SELECT h.name AS host, s.kind, s.step_ns, s.error_ns AS step_err_ns,
       s.host_to_ns + coalesce((SELECT c.offset_ns FROM raw_clock c WHERE c.host_id = s.host_id
                                ORDER BY c.at_ns DESC LIMIT 1),
                               (SELECT fleet_minus_raw_ns FROM raw_run WHERE h.same_clock), h.offset_ns) AS at_ns
FROM raw_clock_step s JOIN raw_host h USING (host_id)
ORDER BY at_ns, host;
