-- A rank of a pipeline in a step.
INSERT INTO raw_stage_step (step, rank, stage, pipeline, n_stages, n_micro, work_ns, collective_ns,
  message_ns, rest_ns, wait_ns, step_ns, theory_ratio)
VALUES (:step, :rank, :stage, :pipeline, :n_stages, :n_micro, :work_ns, :collective_ns, :message_ns,
  :rest_ns, :wait_ns, :step_ns, :theory_ratio)
ON CONFLICT (step, rank) DO UPDATE SET
  stage = excluded.stage, pipeline = excluded.pipeline, n_stages = excluded.n_stages,
  n_micro = excluded.n_micro, work_ns = excluded.work_ns, collective_ns = excluded.collective_ns,
  message_ns = excluded.message_ns, rest_ns = excluded.rest_ns, wait_ns = excluded.wait_ns,
  step_ns = excluded.step_ns, theory_ratio = excluded.theory_ratio;
