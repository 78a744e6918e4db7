-- Two agents' own exchange, held against where both clocks were placed.
INSERT INTO raw_peer_exchange (host_id, peer_id, host_t0_ns, peer_t1_ns, peer_t2_ns, host_t3_ns,
  at_ns, surplus_ns, error_ns, contradicts)
VALUES (:host_id, :peer_id, :host_t0_ns, :peer_t1_ns, :peer_t2_ns, :host_t3_ns, :at_ns, :surplus_ns,
  :error_ns, :contradicts)
ON CONFLICT DO NOTHING;
