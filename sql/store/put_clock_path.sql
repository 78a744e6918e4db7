-- How a host's clock probes fare; told again with every few heartbeats and at a change.
INSERT INTO raw_clock_path (host_id, at_ns, way, stamps, why, n_sent, n_received, n_answered,
  n_exchanges, n_refused, wish)
VALUES (:host_id, :at_ns, :way, :stamps, :why, :n_sent, :n_received, :n_answered, :n_exchanges,
  :n_refused, :wish)
ON CONFLICT (host_id) DO UPDATE SET
  at_ns = excluded.at_ns, way = excluded.way, stamps = excluded.stamps, why = excluded.why,
  n_sent = excluded.n_sent, n_received = excluded.n_received, n_answered = excluded.n_answered,
  n_exchanges = excluded.n_exchanges, n_refused = excluded.n_refused, wish = excluded.wish;
