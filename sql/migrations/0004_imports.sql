-- What only imports tell: each format's own tables. Cells that the format did not say are NULL.

-- What NCCL itself writes: its log, its inspector and profiler, its topology and graph.
CREATE TABLE raw_nccl_rank (comm TEXT NOT NULL, n_ranks INTEGER, rank INTEGER, host TEXT, pid INTEGER, device INTEGER,
  nvml_device INTEGER, bus_id TEXT, n_nodes INTEGER, n_channels INTEGER, complete INTEGER NOT NULL, version TEXT);
CREATE TABLE raw_nccl_comm (comm TEXT PRIMARY KEY, n_ranks INTEGER, n_seen INTEGER NOT NULL, n_complete INTEGER NOT NULL,
  n_channels INTEGER, n_rings INTEGER NOT NULL, n_open INTEGER NOT NULL, n_contradict INTEGER NOT NULL,
  ambiguous INTEGER NOT NULL);
CREATE TABLE raw_nccl_ring (comm TEXT, channel INTEGER, position INTEGER, rank INTEGER NOT NULL,
  PRIMARY KEY (comm, channel, position)) WITHOUT ROWID;
CREATE TABLE raw_nccl_hop (comm TEXT NOT NULL, channel INTEGER NOT NULL, rank INTEGER NOT NULL, previous INTEGER, next INTEGER,
  said_by TEXT NOT NULL);
CREATE TABLE raw_nccl_tree (comm TEXT, channel INTEGER, rank INTEGER, up INTEGER, down_0 INTEGER, down_1 INTEGER, down_2 INTEGER,
  PRIMARY KEY (comm, channel, rank)) WITHOUT ROWID;
CREATE TABLE raw_nccl_edge (comm TEXT NOT NULL, channel INTEGER NOT NULL, connection INTEGER NOT NULL, from_rank INTEGER NOT NULL,
  to_rank INTEGER NOT NULL, side TEXT NOT NULL, transport TEXT NOT NULL, nic TEXT, gdr INTEGER);
CREATE TABLE raw_nccl_nic (host TEXT, pid INTEGER, device INTEGER, network TEXT NOT NULL, number INTEGER NOT NULL,
  name TEXT NOT NULL);
CREATE TABLE raw_nccl_line (host TEXT, pid INTEGER, device INTEGER, at TEXT, kind TEXT NOT NULL, key TEXT, text TEXT NOT NULL);
CREATE TABLE raw_nccl_call (comm TEXT NOT NULL, rank INTEGER, call INTEGER NOT NULL, op TEXT NOT NULL, count INTEGER, dtype TEXT,
  bytes INTEGER, reduction TEXT, root INTEGER, algorithm TEXT, protocol TEXT, first_channel INTEGER, last_channel INTEGER, at TEXT);
CREATE TABLE raw_nccl_perf (comm TEXT NOT NULL, n_ranks INTEGER, rank INTEGER, host TEXT, pid INTEGER, kind TEXT NOT NULL,
  op TEXT, sn INTEGER, peer INTEGER, bytes INTEGER, exec_ns INTEGER, timing TEXT, algbw_gbs REAL, busbw_gbs REAL,
  algorithm TEXT, protocol TEXT, enqueue_ns INTEGER, enqueue_dur_ns INTEGER,
  begin_ns INTEGER, end_ns INTEGER);
CREATE INDEX nccl_perf_by_call ON raw_nccl_perf (comm, kind, op, sn);
CREATE TABLE raw_nccl_drop (comm TEXT, rank INTEGER, host TEXT, pid INTEGER, counter TEXT NOT NULL, n INTEGER);
CREATE TABLE raw_topo_gpu (file TEXT NOT NULL, host TEXT, bus_id TEXT, device INTEGER, rank INTEGER, sm INTEGER, gdr INTEGER,
  numa INTEGER, speed_gts REAL, width INTEGER, n_nvlinks INTEGER);
CREATE TABLE raw_topo_nic (file TEXT NOT NULL, host TEXT, bus_id TEXT, name TEXT, device INTEGER, port INTEGER, speed_mbps INTEGER,
  gdr INTEGER, numa INTEGER, speed_gts REAL, width INTEGER);
CREATE TABLE raw_topo_link (file TEXT NOT NULL, kind TEXT NOT NULL, from_id TEXT, to_id TEXT, count INTEGER, speed_gts REAL,
  width INTEGER);
CREATE TABLE raw_topo_path (file TEXT NOT NULL, gpu TEXT NOT NULL, nic TEXT NOT NULL, dist TEXT NOT NULL, nearest INTEGER NOT NULL);
CREATE TABLE raw_graph_channel (file TEXT NOT NULL, graph INTEGER NOT NULL, algorithm TEXT, pattern TEXT, channel INTEGER NOT NULL,
  position INTEGER NOT NULL, kind TEXT NOT NULL, device INTEGER, speed_intra_gbs REAL, speed_inter_gbs REAL, type_intra TEXT,
  type_inter TEXT, cross_nic INTEGER);
