SELECT trace, rank, schema, n_nodes AS nodes, n_comms AS comms, n_data AS data_edges, n_control AS control_edges,
       n_parent AS parent_edges, n_unknown AS unknown_ids, n_duplicate AS duplicate_ids, n_cyclic AS on_cycles
FROM et_trace ORDER BY trace LIMIT 4096
