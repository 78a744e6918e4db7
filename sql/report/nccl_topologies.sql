WITH f AS (SELECT DISTINCT file FROM topo_link UNION SELECT DISTINCT file FROM topo_gpu)
SELECT f.file, (SELECT count(*) FROM topo_gpu g WHERE g.file = f.file) AS gpus,
       (SELECT count(*) FROM topo_nic n WHERE n.file = f.file) AS nics,
       (SELECT sum(n_nvlinks) FROM topo_gpu g WHERE g.file = f.file) AS nvlinks,
       (SELECT json_group_array(gpu) FROM (SELECT gpu FROM topo_path p WHERE p.file = f.file GROUP BY gpu
        HAVING min(dist NOT IN ('PIX', 'PXB')))) AS "gpus_far_from_a_nic:json",
       (SELECT json_group_array(bus_id) FROM topo_gpu g WHERE g.file = f.file AND g.speed_gts * g.width <
        (SELECT max(speed_gts * width) FROM topo_gpu s WHERE s.file = f.file)) AS "gpus_with_a_slower_link:json"
FROM f ORDER BY f.file LIMIT 256;
