-- What a finished catalogue of an earlier schema lacks, empty, so that the readers' statements hold
-- for it too. In this connection alone.
CREATE TEMP TABLE raw_clock_path (host_id INTEGER PRIMARY KEY, at_ns, way, stamps, why, n_sent,
  n_received, n_answered, n_exchanges, n_refused, wish);
