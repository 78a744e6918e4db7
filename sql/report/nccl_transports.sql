-- Connections of a communicator by how they go; both sides of one count once.
SELECT comm, transport, max(gdr) AS "gdr:bool",
       count(DISTINCT channel || ' ' || connection || ' ' || from_rank || ' ' || to_rank) AS connections,
       count(DISTINCT nic) AS cards
FROM nccl_edge GROUP BY comm, transport ORDER BY comm, connections DESC, transport LIMIT 1024;
