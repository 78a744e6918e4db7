-- One two-way exchange of the control pair.
INSERT INTO raw_exchange (host_id, host_t0_ns, t1_ns, t2_ns, host_t3_ns)
VALUES (:host_id, :host_t0_ns, :t1_ns, :t2_ns, :host_t3_ns)
ON CONFLICT DO NOTHING;
