-- What a rank put on the critical path of a step.
INSERT INTO raw_blame (step, rank, host_id, kind, name, group_id, n, path_ns, excess_ns, held_ns, undecided_ns)
VALUES (:step, :rank, :host_id, :kind, :name, :group_id, :n, :path_ns, :excess_ns, :held_ns, :undecided_ns)
ON CONFLICT (step, rank, kind, name, group_id) DO UPDATE SET
  host_id = excluded.host_id, n = excluded.n, path_ns = excluded.path_ns,
  excess_ns = excluded.excess_ns, held_ns = excluded.held_ns, undecided_ns = excluded.undecided_ns;
