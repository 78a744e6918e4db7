-- A group of ranks; its members may become known later.
INSERT INTO raw_group (group_id, name, ranks, ranks_known)
VALUES (:group_id, :name, :ranks, :ranks_known)
ON CONFLICT (group_id) DO UPDATE SET
  ranks = excluded.ranks, ranks_known = excluded.ranks_known
WHERE excluded.ranks_known >= ranks_known;
