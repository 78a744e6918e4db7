-- One instant on every clock of a host; a batch that comes again brings it again.
INSERT INTO raw_snapshot (host_id, host_ns, half_ns, mono_ns, real_ns, boot_ns, tick_source, tick)
VALUES (:host_id, :host_ns, :half_ns, :mono_ns, :real_ns, :boot_ns, :tick_source, :tick)
ON CONFLICT DO NOTHING;
