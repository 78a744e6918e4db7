-- A host's clock against the reference host's, as it stands now.
INSERT INTO raw_clock_pair (host_id, reference_id, at_ns, correction_ns, width_ns, probe_width_ns, soft_ns, basis)
VALUES (:host_id, :reference_id, :at_ns, :correction_ns, :width_ns, :probe_width_ns, :soft_ns, :basis)
ON CONFLICT (host_id) DO UPDATE SET
  reference_id = excluded.reference_id, at_ns = excluded.at_ns, correction_ns = excluded.correction_ns,
  width_ns = excluded.width_ns, probe_width_ns = excluded.probe_width_ns, soft_ns = excluded.soft_ns,
  basis = excluded.basis;
