-- Finished runs of schema 3: what migrations/0004_imports.sql brought, empty.
CREATE TEMP TABLE timeline_stage (step, rank, stage, n_forward, forward_ns, n_backward, backward_ns, span_ns, idle_ratio);
CREATE TEMP TABLE megatron_step (log, step, n_steps, elapsed_ms, n_skipped, n_nan, loss, loss_scale, grad_norm, learning_rate, global_batch_size);
CREATE TEMP TABLE megatron_timer (log, step, rank, name, value_ms, least_ms);
CREATE TEMP TABLE megatron_pipeline (log, n_stages, n_micro, n_chunks, tp, dp, n_steady, first_step, last_step, timers_of, step_ms, step_theory_ms, forward_ms, backward_ms, optimizer_ms, receive_wait_ms, receive_wait_theory_ms, embedding_ms, embedding_theory_ms, idle_ratio, idle_theory_ratio, least_forward_ms, least_backward_ms, world_size);
CREATE TEMP TABLE et_trace (trace, rank, n_nodes, schema, n_comms, n_data, n_control, n_parent, n_unknown, n_duplicate, n_data_cyclic, n_call_cyclic);
CREATE TEMP TABLE et_node (trace, rank, id, name, type, parent, dur_us, is_comm, collective, comm_group, seq, n_in, n_out, bytes, dtype, source, target);
CREATE TEMP TABLE et_edge (trace, rank, from_id, to_id, kind);
