-- Finished runs of schema 3: what migrations/0004_imports.sql brought, empty.
CREATE TEMP TABLE timeline_stage (step, rank, stage, n_forward, forward_ns, n_backward, backward_ns, span_ns, idle_ratio);
