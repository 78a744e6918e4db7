-- A fact in JSON, one vocabulary for probes and imports.
INSERT INTO raw_record (at_ns, process_id, rank, category, fields)
VALUES (:at_ns, :process_id, :rank, :category, :fields);
