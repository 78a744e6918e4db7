-- What a catalogue of schema 1 lacks, empty, so that today's statements hold for it when it is only
-- read. In this connection alone: a temporary name goes before the file's own.
CREATE TEMP TABLE raw_clock_path (host_id INTEGER PRIMARY KEY, at_ns, way, stamps, why, n_sent,
  n_received, n_answered, n_exchanges, n_refused, wish);
CREATE TEMP TABLE raw_snapshot (host_id, host_ns, half_ns, mono_ns, real_ns, boot_ns, tick_source, tick);
CREATE TEMP TABLE raw_clock_step (host_id, host_from_ns, host_to_ns, kind, step_ns, error_ns);
CREATE TEMP VIEW raw_clock AS
SELECT host_id, at_ns, offset_ns, error_ns, rtt_ns, quality, NULL AS soft_ns, NULL AS skew_ppb, NULL AS status
FROM main.raw_clock;
CREATE TEMP VIEW clock_quality AS
SELECT h.name AS host, c.at_ns, c.offset_ns, c.error_ns AS offset_err_ns, c.rtt_ns, c.quality, h.same_clock,
       c.soft_ns AS offset_soft_ns, c.skew_ppb, c.status
FROM temp.raw_clock c JOIN main.raw_host h USING (host_id);
CREATE TEMP VIEW clock_path AS
SELECT h.name AS host, p.at_ns, p.way, p.stamps, p.why, p.n_sent, p.n_received, p.n_answered,
       p.n_exchanges, p.n_refused, p.wish
FROM temp.raw_clock_path p JOIN main.raw_host h USING (host_id);
CREATE TEMP VIEW clock_step AS
SELECT h.name AS host, s.host_from_ns, s.host_to_ns, s.kind, s.step_ns, s.error_ns AS step_err_ns
FROM temp.raw_clock_step s JOIN main.raw_host h USING (host_id);
CREATE TEMP TABLE raw_contradiction (group_id, seq, early_host_id, late_host_id, at_ns, impossible_ns, against, lifted_ns);
CREATE TEMP TABLE raw_clock_pair (host_id, reference_id, at_ns, correction_ns, width_ns, probe_width_ns, soft_ns, basis);
CREATE TEMP VIEW clock_contradiction AS
SELECT c.at_ns, g.name AS "group", c.seq, e.name AS early_host, l.name AS late_host, c.impossible_ns,
       c.against, c.lifted_ns
FROM temp.raw_contradiction c LEFT JOIN main.raw_group g USING (group_id)
JOIN main.raw_host e ON e.host_id = c.early_host_id JOIN main.raw_host l ON l.host_id = c.late_host_id;
CREATE TEMP VIEW clock_pair AS
SELECT h.name AS host, r.name AS reference, p.at_ns, p.correction_ns, p.width_ns, p.probe_width_ns,
       p.soft_ns AS correction_soft_ns, p.basis
FROM temp.raw_clock_pair p JOIN main.raw_host h USING (host_id) JOIN main.raw_host r ON r.host_id = p.reference_id;
