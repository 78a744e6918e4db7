-- One sample of one counter.
INSERT INTO raw_gauge (at_ns, host_id, rank, name, value)
VALUES (:at_ns, :host_id, :rank, :name, :value);
