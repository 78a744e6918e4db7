-- How well a host could be placed on the time line, over time.
INSERT INTO raw_clock (host_id, at_ns, offset_ns, error_ns, rtt_ns, quality, soft_ns, skew_ppb, status)
VALUES (:host_id, :at_ns, :offset_ns, :error_ns, :rtt_ns, :quality, :soft_ns, :skew_ppb, :status)
ON CONFLICT (host_id, at_ns) DO UPDATE SET
  offset_ns = excluded.offset_ns, error_ns = excluded.error_ns, rtt_ns = excluded.rtt_ns,
  quality = excluded.quality, soft_ns = excluded.soft_ns, skew_ppb = excluded.skew_ppb,
  status = excluded.status;
