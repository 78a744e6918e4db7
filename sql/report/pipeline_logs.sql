SELECT n_stages AS stages, n_micro AS micro_batches, n_chunks AS chunks, tp, dp, n_steady AS lines, first_step, last_step, timers_of,
       step_ms, step_theory_ms, forward_ms, backward_ms, optimizer_ms, receive_wait_ms, receive_wait_theory_ms, embedding_ms,
       embedding_theory_ms, idle_ratio AS idle, idle_theory_ratio AS idle_theory,
       (SELECT count(*) FROM megatron_step) AS iterations, (SELECT sum(n_skipped) FROM megatron_step) AS skipped
FROM megatron_pipeline
