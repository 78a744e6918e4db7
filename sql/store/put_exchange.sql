-- A two-way exchange: of each second the best of each direction.
INSERT INTO raw_exchange (host_id, host_t0_ns, t1_ns, t2_ns, host_t3_ns, way)
VALUES (:host_id, :host_t0_ns, :t1_ns, :t2_ns, :host_t3_ns, :way)
ON CONFLICT DO NOTHING;
