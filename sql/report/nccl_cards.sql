SELECT network, number, name, count(DISTINCT host) AS hosts FROM nccl_nic
GROUP BY network, number, name ORDER BY network, number, hosts DESC, name LIMIT 256;
