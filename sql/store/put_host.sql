-- A host is a boot of a machine; it never changes.
INSERT INTO raw_host (host_id, name, boot_id, time_ns_inode, same_clock, offset_ns)
VALUES (:host_id, :name, :boot_id, :time_ns_inode, :same_clock, :offset_ns)
ON CONFLICT DO NOTHING;
