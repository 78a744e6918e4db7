-- A log line or an exception of a rank.
INSERT INTO raw_log (at_ns, err_ns, process_id, rank, kind, level, logger, text)
VALUES (:at_ns, :err_ns, :process_id, :rank, :kind, :level, :logger, :text);
