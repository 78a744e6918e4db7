SELECT group_id, name, ranks, ranks_known FROM raw_group ORDER BY group_id;
