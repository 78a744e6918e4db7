-- A clock was set, or the machine slept.
INSERT INTO raw_clock_step (host_id, host_from_ns, host_to_ns, kind, step_ns, error_ns)
VALUES (:host_id, :host_from_ns, :host_to_ns, :kind, :step_ns, :error_ns)
ON CONFLICT DO NOTHING;
