-- Each order of ranks, and the channels that have it.
WITH o AS (SELECT comm, channel, json_group_array(rank) AS ranks
           FROM (SELECT comm, channel, rank FROM nccl_ring ORDER BY comm, channel, position) GROUP BY comm, channel)
SELECT comm, json_group_array(channel) AS "channels:json", ranks AS "ranks:json" FROM o
GROUP BY comm, ranks ORDER BY comm, min(channel) LIMIT 256;
