SELECT * FROM (
  SELECT CAST(at_ns AS TEXT) AS at_ns, err_ns, rank, level, logger, text, kind, log_id AS id
  FROM raw_log ORDER BY log_id DESC LIMIT :limit)
ORDER BY id
