-- Finished runs of schema 3: what migrations/0004_imports.sql brought, empty.

CREATE TEMP TABLE flight_group (
  rank, comm_id, description, size, pg_id, last_enqueued, last_started, last_completed, n_calls, n_pending);
CREATE TEMP TABLE flight_entry (
  rank, record_id, comm_id, seq, kind, op, state, created_ns, seen_started_ns, seen_completed_ns, duration_ns, timeout_ns,
  dtype, in_shapes, out_shapes, thread, frame, frames);
