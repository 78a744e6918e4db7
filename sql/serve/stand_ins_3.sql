-- Finished runs of schema 3: what migrations/0004_imports.sql brought, empty.

CREATE TEMP VIEW profile AS
SELECT NULL AS rank, NULL AS rank_from, NULL AS n_work, NULL AS n_steps, NULL AS n_launched, NULL AS n_early,
       NULL AS early_ns, NULL AS n_left_out, NULL AS cut_ns, NULL AS n_groups_cut WHERE 0;
CREATE TEMP VIEW profile_breakdown AS
SELECT NULL AS rank, NULL AS step, NULL AS from_ns, NULL AS to_ns, NULL AS n_work, NULL AS total_ns, NULL AS idle_ns,
       NULL AS compute_ns, NULL AS non_compute_ns, NULL AS communication_ns, NULL AS memory_ns, NULL AS overlap_ns,
       NULL AS overlap_ratio, NULL AS compute_only_ns, NULL AS communication_only_ns, NULL AS memory_only_ns WHERE 0;
CREATE TEMP VIEW profile_call AS
SELECT NULL AS rank, NULL AS kernel, NULL AS collective, NULL AS dtype, NULL AS in_elements, NULL AS out_elements,
       NULL AS "group", NULL AS group_name, NULL AS group_size, NULL AS ranks, NULL AS n, NULL AS sum_ns,
       NULL AS first_ns, NULL AS last_ns WHERE 0;
CREATE TEMP VIEW profile_annotation AS
SELECT NULL AS rank, NULL AS name, NULL AS place, NULL AS n, NULL AS sum_ns, NULL AS n_work, NULL AS work_ns WHERE 0;
