-- A collective that cannot have been; told again when it is explained.
INSERT INTO raw_contradiction (group_id, seq, early_host_id, late_host_id, at_ns, impossible_ns, against, lifted_ns)
VALUES (:group_id, :seq, :early_host_id, :late_host_id, :at_ns, :impossible_ns, :against, :lifted_ns)
ON CONFLICT (group_id, seq) DO UPDATE SET
  early_host_id = excluded.early_host_id, late_host_id = excluded.late_host_id, at_ns = excluded.at_ns,
  impossible_ns = excluded.impossible_ns, against = excluded.against, lifted_ns = excluded.lifted_ns;
