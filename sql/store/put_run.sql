-- One run a catalogue; later calls only learn more about it.
INSERT INTO raw_run (run_id, name, world_size, started_ns, ended_ns, fleet_minus_raw_ns, boot_id,
  time_ns_inode)
VALUES (:run_id, :name, :world_size, :started_ns, :ended_ns, :fleet_minus_raw_ns, :boot_id,
  :time_ns_inode)
ON CONFLICT (run_id) DO UPDATE SET
  world_size = excluded.world_size, ended_ns = excluded.ended_ns,
  fleet_minus_raw_ns = excluded.fleet_minus_raw_ns, boot_id = excluded.boot_id,
  time_ns_inode = excluded.time_ns_inode;
