-- What only imports tell: each format's own tables. Cells that the format did not say are NULL.

-- Timelines of pipelines (StragglerAnalysis, MegatronApp): what each worker computed in a step.
CREATE TABLE raw_timeline_stage (
  step INTEGER NOT NULL, rank INTEGER NOT NULL, stage INTEGER, n_forward INTEGER NOT NULL, forward_ns INTEGER NOT NULL,
  n_backward INTEGER NOT NULL, backward_ns INTEGER NOT NULL, span_ns INTEGER, idle_ratio REAL
) STRICT;

-- Training logs of Megatron and DeepSpeed.
CREATE TABLE raw_megatron_step (
  step INTEGER NOT NULL, n_steps INTEGER, elapsed_ms REAL, n_skipped REAL, n_nan REAL, loss REAL, loss_scale REAL,
  grad_norm REAL, learning_rate REAL, global_batch_size REAL
) STRICT;
CREATE TABLE raw_megatron_timer (step INTEGER, rank INTEGER, name TEXT NOT NULL, value_ms REAL, least_ms REAL) STRICT;
CREATE TABLE raw_megatron_pipeline (
  n_stages INTEGER, n_micro INTEGER, n_chunks INTEGER, tp INTEGER, dp INTEGER, n_steady INTEGER, first_step INTEGER,
  last_step INTEGER, timers_of TEXT, step_ms REAL, step_theory_ms REAL, forward_ms REAL, backward_ms REAL,
  optimizer_ms REAL, receive_wait_ms REAL, receive_wait_theory_ms REAL, embedding_ms REAL, embedding_theory_ms REAL,
  idle_ratio REAL, idle_theory_ratio REAL, least_forward_ms REAL
) STRICT;
