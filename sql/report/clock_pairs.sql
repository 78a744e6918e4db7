-- Each host's clock against the reference host's, as the job's own collectives have it.
SELECT h.name AS host, r.name AS reference, p.at_ns, p.correction_ns, p.width_ns, p.probe_width_ns, p.soft_ns, p.basis
FROM raw_clock_pair p JOIN raw_host h USING (host_id) JOIN raw_host r ON r.host_id = p.reference_id
ORDER BY h.name;
