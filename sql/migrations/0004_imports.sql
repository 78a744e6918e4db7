-- What only imports tell: each format's own tables. Cells that the format did not say are NULL.

-- Timelines of pipelines (StragglerAnalysis, MegatronApp): what each worker computed in a step.
CREATE TABLE raw_timeline_stage (
  step INTEGER NOT NULL, rank INTEGER NOT NULL, stage INTEGER, n_forward INTEGER NOT NULL, forward_ns INTEGER NOT NULL,
  n_backward INTEGER NOT NULL, backward_ns INTEGER NOT NULL, span_ns INTEGER, idle_ratio REAL
) STRICT;
