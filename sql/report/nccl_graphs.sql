SELECT file, graph, algorithm, pattern, count(DISTINCT channel) AS channels, max(speed_intra_gbs) AS speed_intra_gbs,
       max(speed_inter_gbs) AS speed_inter_gbs, max(type_intra) AS type_intra, max(type_inter) AS type_inter,
       count(DISTINCT CASE WHEN kind = 'gpu' THEN device END) AS gpus
FROM graph_channel GROUP BY file, graph ORDER BY file, graph LIMIT 256;
