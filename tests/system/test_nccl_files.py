#!/usr/bin/env python3
"""What NCCL itself writes through `syncline import`: logs of releases 2.7 to 2.28, the inspector's and a profiler's
calls, topologies and graphs.

Logs are drawn here in the shapes of each release, with the rings that they must give. Recordings of two GPUs are in
tests/data; others lie beside the checkout (../shared/data), and without them those tests are skipped."""
import gzip
import json
import os
import random
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import json_schema
import test_import

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
OURS = os.path.join(ROOT, "tests", "data", "import")
DATA = os.path.join(os.path.dirname(ROOT), "shared", "data")


def call(*words):
    return subprocess.run([SYNCLINE, *words], text=True, capture_output=True, timeout=300)


class Folder(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._dir = tempfile.TemporaryDirectory()
        self.addCleanup(self._dir.cleanup)
        self.dir = self._dir.name
        self.db = os.path.join(self.dir, "job.db")

    def file(self, name, content):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return path

    def take(self, *files, status=0):
        if os.path.exists(self.db):
            os.unlink(self.db)
        r = call("import", *files, "--db", self.db)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r.stdout

    def report(self):
        r = call("report", self.db, "--json")
        self.assertIn(r.returncode, (0, 1, 4, 5), r.stderr)
        v = json.loads(r.stdout)
        with open(os.path.join(ROOT, "docs", "report.schema.json"), encoding="utf-8") as f:
            self.assertEqual(json_schema.problems(v, json.load(f)), [])
        return v

    def sql(self, query):
        r = call("sql", self.db, "--json", query)
        self.assertEqual(r.returncode, 0, r.stderr)
        return json.loads(r.stdout)

    def rings(self, comm=None):
        found = {}
        for r in self.sql("SELECT comm, channel, position, rank FROM nccl_ring ORDER BY comm, channel, position"):
            if comm in (None, r["comm"]):
                found.setdefault(r["channel"], []).append(r["rank"])
        return found


# ---- logs as each release writes them ----

class Job:
    """Hosts of four GPUs in a ring a channel: whole hosts one after the other, GPUs inside in any order."""

    def __init__(self, rng, n_hosts, n_channels, gpus=4):
        self.rng, self.n = rng, n_hosts * gpus
        self.host = [f"node-{r // gpus}" for r in range(self.n)]
        self.gpu = [r % gpus for r in range(self.n)]
        self.rings, self.trees = [], []
        for _ in range(n_channels):
            inside = rng.sample(range(1, gpus), gpus - 1)
            ring = [h * gpus + g for h in range(n_hosts) for g in [0, *inside]]
            self.rings.append(ring)
            up = {}
            for h in range(n_hosts):  # a chain inside each host, hosts in a balanced tree by their first GPU
                chain = ring[h * gpus:(h + 1) * gpus]
                up[chain[0]] = ring[((h - 1) // 2) * gpus] if h else -1
                for a, b in zip(chain, chain[1:]):
                    up[b] = a
            self.trees.append(up)

    def downs(self, c, r):
        v = [k for k, up in self.trees[c].items() if up == r]
        return v + [-1] * (3 - len(v))

    def neighbours(self, c, r):
        ring = self.rings[c]
        i = ring.index(r)
        return ring[i - 1], ring[(i + 1) % self.n]

    def tree_ends(self, c, r):
        return [k for k in [self.trees[c][r], *self.downs(c, r)] if k >= 0]

    def via(self, r, k, how):
        return how if self.host[r] == self.host[k] else None


def order_line(ring, release):
    if release < (2, 23):
        return " ".join(f"{r:3d}" for r in ring[:20])
    text = " ".join(str(r) for r in ring)
    return text if len(text) < 100 else text[:100].rsplit(" ", 1)[0] + " ..."


def rank_lines(job, r, release, comm="0x7f00a0001060", graph=False):
    """What rank r writes, without its prefix."""
    p2p = "P2P/IPC" if release < (2, 19) else "P2P/CUMEM"
    c_all = range(len(job.rings))
    device = (lambda k: f"{k}[{0x1a000 + job.gpu[k]:x}]") if release < (2, 18) else (lambda k: f"{k}[{job.gpu[k]}]")
    conn = "" if release < (2, 18) else "/0"
    extra = f" commId 0xb11ccc1bf378{job.n:04x}" if release >= (2, 18) else ""
    init = f"comm {comm}{r:x} rank {r} nranks {job.n} cudaDev {job.gpu[r]} busId {0x1a000 + job.gpu[r]:x}{extra}"
    out = [f"Bootstrap : Using [0]ib0:10.0.3.{r}<0>" if release < (2, 8) else f"Bootstrap : Using ib0:10.0.3.{r}<0>",
           "NET/Plugin : No plugin found (libnccl-net.so), using internal implementation",
           f"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB {'[RO]' if release >= (2, 10) else ''}; OOB ib0:10.0.3.{r}<0>",
           "Using network IB"]
    if release >= (2, 18):
        out.append(f"ncclCommInitRank {init} - Init START")
    if r == 0:
        out += [f"Channel {c:02d}/{len(job.rings):02d} : {order_line(job.rings[c], release)}" for c in c_all]
    if graph:
        out += ["Ring %02d : %d -> %d -> %d" % (c, job.neighbours(c, r)[0], r, job.neighbours(c, r)[1]) for c in c_all]
    down = ["/".join(str(k) for k in job.downs(c, r)) for c in c_all]
    both = (lambda c: f"|{job.trees[c][r]}->{r}->{down[c]}") if release < (2, 8) else (lambda c: "")
    out.append("Trees " + " ".join(f"[{c}] {down[c]}->{r}->{job.trees[c][r]}{both(c)}" for c in c_all))
    for c in c_all:
        previous, following = job.neighbours(c, r)
        for k, send in [(previous, False), (following, True)] + [(k, s) for k in job.tree_ends(c, r) for s in (0, 1)]:
            a, b = (r, k) if send else (k, r)
            if job.host[r] == job.host[k]:
                line = f"Channel {c:02d}{conn} : {device(a)} -> {device(b)} via {p2p}"
                if send and line not in out:
                    out.append(line)
            else:
                line = (f"Channel {c:02d}{conn} : {device(a)} -> {device(b)} [{'send' if send else 'receive'}] "
                        f"via NET/IB/{job.gpu[r] % 2}{'/GDRDMA' if release >= (2, 10) else ''}")
                if line not in out:
                    out.append(line)
    if release >= (2, 10):
        out += ["Connected all rings", "Connected all trees"]
    out += [f"{len(job.rings)} coll channels, 8 p2p channels, 1 p2p channels per peer", f"{init} - Init COMPLETE"]
    return out


def prefixed(job, r, line, stamp=""):
    return f"{stamp}{job.host[r]}:{4000 + r}:{5000 + r} [{job.gpu[r]}] NCCL INFO {line}"


def mixed_log(job, release, graph=False):
    """All ranks in one file, as they come, with a program's own lines between."""
    queues = [[prefixed(job, r, line) for line in rank_lines(job, r, release, graph=graph)] for r in range(job.n)]
    out = ["srun python train.py", f"NCCL version {'.'.join(str(x) for x in release)}.3+cuda11.0"]
    while any(queues):
        q = job.rng.choice([q for q in queues if q])
        out.append(q.pop(0))
        if job.rng.random() < 0.05:
            out.append(job.rng.choice(["loss: 2.31", "", "*****", "step 12 -> 13 [ok]", "Channel 00 : 0 1"]))
    return "\n".join(out) + "\n"


class Logs(Folder):
    def check(self, job, v):
        self.assertEqual(self.rings(), dict(enumerate(job.rings)))
        comm, = v["nccl"]["communicators"]
        self.assertEqual((comm["ranks"], comm["ranks_seen"], comm["ranks_set_up"], comm["rings_complete"]),
                         (job.n, job.n, job.n, True))
        self.assertEqual((v["verdicts"], v["run"]["world_size"], v["coverage"]["ranks_seen"]), ([], job.n, job.n))

    def test_rings_of_each_release_in_one_file_of_all_ranks(self):
        rng = random.Random(5)
        for release in ((2, 7), (2, 10), (2, 18), (2, 23), (2, 28)):
            for n_hosts, graph in ((1, False), (2, False), (16, False), (16, True)):
                with self.subTest(release=release, hosts=n_hosts, graph=graph):
                    job = Job(rng, n_hosts, 4)
                    self.take(self.file("a.log", mixed_log(job, release, graph)))
                    self.check(job, self.report())

    def test_a_file_a_rank_and_lines_with_a_time(self):
        job = Job(random.Random(6), 2, 2)
        files = []
        for r in range(job.n):
            text = "".join(prefixed(job, r, line, "[2025-03-01 10:11:12] ") + "\n"
                           for line in ["NCCL version 2.27.3+cuda12.9", *rank_lines(job, r, (2, 27), graph=True)])
            files.append(self.file(f"rank{r}.log", text))
        self.take(*files)
        self.check(job, self.report())
        self.assertEqual(self.sql("SELECT DISTINCT at, text FROM nccl_line WHERE kind = 'version'"),
                         [{"at": "2025-03-01 10:11:12", "text": "2.27.3+cuda12.9"}])

    def test_without_ranks_a_ring_is_not_complete_unless_the_others_tell_it(self):
        job = Job(random.Random(7), 16, 2)
        lines = [line for line in mixed_log(job, (2, 7)).splitlines() if ":4005:" not in line and ":4033:" not in line]
        self.take(self.file("a.log", "\n".join(lines)))
        comm, = self.report()["nccl"]["communicators"]
        self.assertEqual((comm["ranks_seen"], comm["rings"], comm["rings_open"], comm["rings_complete"]), (62, 0, 2, False))
        self.assertIn("Rings not complete: 0 known, 2 with too little said", call("report", self.db).stdout)

    def test_lines_that_contradict_each_other_give_no_ring(self):
        job = Job(random.Random(8), 1, 2)
        text = mixed_log(job, (2, 28), graph=True)
        p, n = job.neighbours(0, 2)
        self.take(self.file("a.log", text.replace(f"Ring 00 : {p} -> 2 -> {n}\n", f"Ring 00 : {n} -> 2 -> {p}\n")))
        comm, = self.report()["nccl"]["communicators"]
        self.assertEqual((comm["rings"], comm["rings_contradict"]), (1, 1))
        self.assertEqual(list(self.rings()), [1])

    def test_lines_that_ran_into_each_other_are_not_read(self):
        job = Job(random.Random(9), 1, 1)
        lines = mixed_log(job, (2, 28), graph=True).splitlines()
        lines.insert(len(lines), prefixed(job, 0, "Ring 00 : 3 -> 1") + prefixed(job, 1, "Ring 00 : 0 -> 1"))
        out = self.take(self.file("a.log", "\n".join(lines)))
        self.assertIn("1 lines are cut by others", out)
        self.check(job, self.report())

    def test_communicators_of_one_size_that_nothing_tells_apart_are_not_mixed_up(self):
        jobs = [Job(random.Random(k), 1, 2) for k in (1, 2)]
        jobs[1].host = ["other"] * 4
        text = "".join(prefixed(j, r, line) + "\n" for j in jobs for r in range(4) for line in rank_lines(j, r, (2, 7)))
        self.take(self.file("a.log", text))
        comm, = self.report()["nccl"]["communicators"]
        self.assertEqual((comm["ambiguous"], comm["rings_complete"], self.rings()), (True, False, {}))
        self.assertIn("the log does not tell them apart", call("report", self.db).stdout)

    def test_calls_in_order_and_where_they_differ(self):
        job = Job(random.Random(3), 1, 1)
        text = mixed_log(job, (2, 28))
        for r in range(4):
            for k in range(5 if r != 2 else 4):
                op, n = ("AllGather", 8) if (r, k) == (3, 3) else ("AllReduce", 1024)
                text += prefixed(job, r, f"{op}: opCount {k:x} sendbuff 0x7f recvbuff 0x7e count {n} datatype 7 op 0 "
                                         f"root 0 comm 0x7f00a0001060{r:x} [nranks=4] stream 0x1") + "\n"
                text += prefixed(job, r, f"{op}: {4 * n} Bytes -> Algo RING proto LL channel{{Lo..Hi}}={{0..0}}") + "\n"
        self.take(self.file("a.log", text))
        comm, = self.report()["nccl"]["communicators"]
        self.assertEqual((comm["calls"], comm["ranks_with_calls"], comm["first_odd_call"], comm["fewest_calls_rank"]),
                         (5, 4, 3, 2))
        self.assertEqual(self.sql("SELECT op, count, dtype, bytes, reduction, algorithm, protocol, last_channel FROM nccl_call "
                                  "WHERE rank = 1 AND call = 0"),
                         [{"op": "AllReduce", "count": 1024, "dtype": "float32", "bytes": 4096, "reduction": "sum",
                           "algorithm": "RING", "protocol": "LL", "last_channel": 0}])

    def test_a_start_that_hangs_on_a_loopback_address_is_a_verdict_and_a_completed_one_is_none(self):
        job = Job(random.Random(4), 2, 1)
        text = mixed_log(job, (2, 28)).replace("ib0:10.0.3.", "lo:127.0.0.")
        self.take(self.file("a.log", text))
        self.assertEqual(self.report()["verdicts"], [])
        begun = "\n".join(line for line in text.splitlines()
                          if "Init START" in line or "Bootstrap" in line or "Using" in line or "version" in line)
        self.take(self.file("b.log", begun))
        v = self.report()
        self.assertEqual([x["class"] for x in v["verdicts"]], ["init.wrong_interface"])
        self.assertEqual(v["nccl"]["communicators"][0]["ranks_set_up"], 0)

    def test_a_start_that_hangs_with_two_versions_names_the_odd_rank(self):
        job = Job(random.Random(4), 2, 1)
        files = []
        for r in range(job.n):
            version = "2.19.3+cuda12.2" if r == 5 else "2.21.5+cuda12.4"
            lines = [f"NCCL version {version}"] + [x for x in rank_lines(job, r, (2, 21)) if "Init START" in x]
            files.append(self.file(f"r{r}.log", "".join(prefixed(job, r, x) + "\n" for x in lines)))
        self.take(*files)
        self.assertEqual([(x["class"], x["culprit"]["ranks"]) for x in self.report()["verdicts"]],
                         [("config.version_mismatch", [5])])

    def test_beside_profiles_of_the_same_ranks_in_any_order(self):
        job = Job(random.Random(4), 1, 1, gpus=2)
        log = self.file("a.log", mixed_log(job, (2, 28)))
        profiles = [self.file(f"rank{r}.json", json.dumps(test_import.profile(r, 900, 0))) for r in (0, 1)]
        for files in ([log, *profiles], [*profiles, log]):
            self.take(*files)
            v = self.report()
            self.assertEqual((v["coverage"]["ranks_seen"], v["run"]["world_size"], v["steps"]["n"]), (2, 2, 6))
            self.assertIn("ends of collectives", v["clock"]["method"])
            self.assertEqual(self.rings(), {0: job.rings[0]})
            self.assertEqual({r["category"] for r in self.sql("SELECT category FROM record")},
                             {"nccl.bootstrap_if", "nccl.net"})

    def test_connections_of_networks_with_blanks_in_their_names_and_of_switches(self):
        job = Job(random.Random(4), 2, 1)
        text = mixed_log(job, (2, 28)).replace("via NET/IB/", "via NET/AWS Libfabric/")
        pointer = re.search(r"comm (0x\w+) rank 0 ", text).group(1)
        for line in ("Channel 00/0 : 0[0] -> 6[2] [send] via COLLNET/SHARP/0", "Channel 00/1 : 0[0] -> 5[1] [send] via NET/AWS Libfabric/1",
                     f"Channel 00/0 : 0[0] -> 3[3] via P2P/IPC/read comm {pointer} nRanks 08"):
            text += prefixed(job, 0, line) + "\n" if "P2P" not in line or 3 in job.tree_ends(0, 0) else ""
        self.take(self.file("a.log", text))
        self.check(job, self.report())
        self.assertEqual(self.sql("SELECT DISTINCT transport, gdr FROM nccl_edge WHERE connection = 0 AND nic IS NOT NULL ORDER BY 1"),
                         [{"transport": "NET/AWS Libfabric", "gdr": 1}])

    def test_no_name_of_a_machine_is_kept_unless_asked_for(self):
        job = Job(random.Random(4), 2, 1)
        text = mixed_log(job, (2, 28)) + "node-1:4005:5005 [1] net.cc:9 NCCL WARN Connect to node-0<1> failed\n"
        for words, kept in (([], False), (["--keep-names"], True)):
            self.take(self.file("a.log", text), *words)
            with open(self.db, "rb") as f:
                self.assertEqual(b"node-1" in f.read(), kept)
            warning, = self.sql("SELECT text FROM nccl_line WHERE kind = 'warning'")
            self.assertEqual("node-0" in warning["text"], kept)
            self.assertEqual(len(self.sql("SELECT DISTINCT host FROM nccl_rank")), 2)

    def test_our_own_recording(self):
        names = ("nccl_debug_rank0.log.gz", "nccl_debug_rank1.log.gz", "topo.xml", "graph.xml")
        self.take(*(os.path.join(OURS, n) for n in names))
        v = self.report()
        self.assertEqual(self.rings(), {c: [0, 1] for c in range(24)})
        self.assertEqual(v["nccl"]["transports"], [{"comm": "0xb11ccc1bf37884ff", "transport": "P2P/CUMEM", "gdr": None,
                                                    "connections": 48, "cards": 0}])
        comm, = v["nccl"]["communicators"]
        self.assertEqual((comm["calls"], comm["first_odd_call"], comm["fewest_calls_rank"]), (273, None, None))
        topology, = v["nccl"]["topologies"]
        self.assertEqual((topology["gpus"], topology["nics"], topology["nvlinks"]), (2, 1, 36))
        self.assertEqual([(g["algorithm"], g["channels"]) for g in v["nccl"]["graphs"]], [("ring", 12), ("tree", 12)])
        self.assertEqual(v["verdicts"], [])


# ---- calls that were recorded ----

def record(rank, sn, us, kernel=None, host="nodea", version="v4.0", op="AllReduce", size=1 << 20):
    v = {"header": {"id": "0xe62dedaa97644a", "rank": rank, "n_ranks": 2, "nnodes": 1},
         "metadata": {"inspector_output_format_version": version, "rec_mechanism": "nccl_profiler_interface",
                      "dump_timestamp_us": 1752867229276385, "hostname": host, "pid": 700 + rank},
         "coll_perf": {"coll": op, "coll_sn": sn, "coll_msg_size_bytes": size, "coll_exec_time_us": us,
                       "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": 1.5, "coll_busbw_gbs": 1.5}}
    if version != "v4.0":
        v["coll_perf"].update(coll_algo="RING", coll_proto="LL")
    if kernel:
        begin, end = kernel
        v["coll_perf"]["event_trace_ts"] = {
            "coll_start_ts": begin - 30, "coll_stop_ts": begin - 25,
            "kernel_events": [{"channel_id": c, "kernel_start_ts": begin + c, "kernel_stop_ts": end - c} for c in (0, 1)]}
    return json.dumps(v) + "\n"


class Recorded(Folder):
    def test_durations_alone_are_numbers_and_the_least_is_the_transfer(self):
        # Rank 1 is late to call 1: rank 0 waits.
        files = [self.file("a-pid700.log", record(0, 0, 500) + record(0, 1, 3500) + record(0, 2, 510.5)),
                 self.file("a-pid701.log", record(1, 0, 520) + record(1, 1, 505) + record(1, 2, 512) +
                           '{"header":{"id":"0xe62dedaa97644a","rank":1},"metadata":{"hostname":"nodea","pid":701},'
                           '"dump_stats":{"coll_dropped":3}}\n{"header":{"id":')]
        self.assertIn("1 lines are no record", self.take(*files))
        self.assertEqual(self.sql("SELECT sn, transfer_ns, longest_ns, waiting_rank, n_seen FROM nccl_transfer"),
                         [{"sn": 0, "transfer_ns": 500000, "longest_ns": 520000, "waiting_rank": 1, "n_seen": 2},
                          {"sn": 1, "transfer_ns": 505000, "longest_ns": 3500000, "waiting_rank": 0, "n_seen": 2},
                          {"sn": 2, "transfer_ns": 510500, "longest_ns": 512000, "waiting_rank": 1, "n_seen": 2}])
        v = self.report()
        self.assertEqual((v["collectives"]["n"], v["verdicts"]), (0, []))
        self.assertEqual(v["nccl"]["timed"], {"calls": 6, "enqueue_only": 0, "placed_in_time": 0, "dropped": 3})
        self.assertIn("what is longer is waiting for others", call("report", self.db).stdout)

    def test_verbose_dumps_are_collectives_matched_by_their_numbers(self):
        rng, lines, t = random.Random(1), [[], []], 1752867229000000
        for sn in range(60):
            late = rng.choice((20, 900))
            t += rng.randrange(5000, 20000)
            for r in (0, 1):
                ahead = 70000 * r
                if sn == 17 and r == 1:
                    continue  # a call that found no room
                lines[r].append(record(r, sn, 500, (t + ahead + late * r, t + ahead + late + 500), f"node{r}", "v4.2"))
        self.take(*(self.file(f"node{r}-pid{700 + r}.log", "".join(lines[r])) for r in (0, 1)))
        v = self.report()
        self.assertIn("which have numbers", v["clock"]["method"])
        offsets = sorted(h["offset_ns"] for h in v["clock"]["hosts"])
        self.assertLess(abs(offsets[1] - offsets[0] - 70000000), 20000)
        rows = self.sql("SELECT seq, n_seen FROM collective ORDER BY seq")
        self.assertEqual([(r["seq"], r["n_seen"]) for r in rows], [(k, 1 if k == 17 else 2) for k in range(60)])

    def test_a_profiler_s_trace_without_kernels_says_nothing_of_the_transfer(self):
        def event(name, cat, ph, ts, **args):
            v = {"name": name, "cat": cat, "ph": ph, "id": 0, "pid": 9, "tid": 1, "ts": ts}
            return json.dumps({**v, "args": args} if args else v)

        def coll(sn, at, kernels):
            yield event("AllReduce", "COLL", "b", at, SeqNum=sn, CommHash=10644631396088996035, Rank=7, Count=262144,
                        Datatype="ncclFloat32", Algorithm="RING", Protocol="LL", nChannels=2)
            for gpu in kernels:
                yield event("KernelCh", "GPU", "b", at + 50, Channel=0, StartGpuClk=gpu, StopGpuClk=gpu + 900000)
                yield event("KernelCh", "GPU", "e", at + 1000)
            yield event("AllReduce", "COLL", "e", at + 12.5)

        bare = '{"name": "Send", "cat": "P2P_API", "ph": "b", "id": 0, "pid": 9, "tid": 1, "ts": 0.0, ' \
               '"args": {"count": 2, "datatype": ncclFloat32, "Stream": 0x4142e90}}'
        enqueue = ",\n".join([bare, *coll(0, 100.0, []), *coll(1, 300.0, [])])
        out = self.take(self.file("a.json", "[\n" + enqueue + ",\n{}]\n"))
        self.assertIn("of 2 of 2 calls only the enqueue was recorded, not the transfer", out)
        self.assertEqual(self.sql("SELECT comm, rank, sn, bytes, exec_ns, enqueue_ns, enqueue_dur_ns, begin_ns FROM nccl_perf "
                                  "WHERE sn = 1"),
                         [{"comm": f"0x{10644631396088996035:x}", "rank": 7, "sn": 1, "bytes": 1048576, "exec_ns": None,
                           "enqueue_ns": 300000, "enqueue_dur_ns": 12500, "begin_ns": None}])
        self.assertEqual(self.report()["collectives"]["n"], 0)
        g = 1765223116927674080
        kernels = ",\n".join([*coll(0, 100.0, [g, g + 3000]), *coll(1, 3000.0, [g + 10**7])])
        self.take(self.file("b.json", "[\n" + kernels + ",\n{}]\n"))
        self.assertEqual(self.sql("SELECT exec_ns, timing, begin_ns, end_ns FROM nccl_perf ORDER BY sn"),
                         [{"exec_ns": 903000, "timing": "kernel_gpu", "begin_ns": 150000, "end_ns": 1100000},
                          {"exec_ns": 900000, "timing": "kernel_gpu", "begin_ns": 3050000, "end_ns": 4000000}])
        self.assertEqual(self.report()["collectives"]["n"], 2)


# ---- topologies ----

SYSTEM = """<system version="1"><cpu host_hash="0x9f" numaid="0" arch="x86_64">
<pci busid="0000:15:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
 <pci busid="0000:18:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
  <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:19:00.0" count="4" tclass="0x0302"/></gpu></pci>
 <pci busid="0000:17:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
  <nic><net name="mlx5_0" dev="0" speed="400000" port="1" gdr="1"/></nic></pci></pci>
<pci busid="0000:19:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="8">
  <gpu dev="1" sm="90" rank="1" gdr="1"><nvlink target="0000:18:00.0" count="4" tclass="0x0302"/></gpu></pci></cpu></system>"""


class Topologies(Folder):
    def test_a_machine_with_its_links_and_distances(self):
        self.take(self.file("t.xml", SYSTEM))
        t, = self.report()["nccl"]["topologies"]
        self.assertEqual(t, {"file": "t.xml", "gpus": 2, "nics": 1, "nvlinks": 8, "gpus_far_from_a_nic": ["0000:19:00.0"],
                             "gpus_with_a_slower_link": ["0000:19:00.0"]})
        self.assertEqual(self.sql("SELECT gpu, nic, dist FROM topo_path"),
                         [{"gpu": "0000:18:00.0", "nic": "mlx5_0", "dist": "PIX"},
                          {"gpu": "0000:19:00.0", "nic": "mlx5_0", "dist": "PHB"}])
        self.assertEqual(self.sql("SELECT speed_mbps, port, numa FROM topo_nic"), [{"speed_mbps": 400000, "port": 1, "numa": 0}])

    def test_with_a_log_of_the_same_ranks_it_says_which_card_is_whose(self):
        job = Job(random.Random(2), 1, 1, gpus=2)
        self.take(self.file("t.xml", SYSTEM), self.file("a.log", mixed_log(job, (2, 28))))
        rows = self.sql("SELECT rank, category, fields FROM record WHERE category LIKE 'topo.%' ORDER BY category, rank")
        self.assertEqual([(r["rank"], json.loads(r["fields"])) for r in rows],
                         [(0, {"nic": "mlx5_0", "dist": "PIX"}), (1, {"nic": "mlx5_0", "dist": "PHB"}),
                          (0, {"kind": "pcie", "width": 16, "speed": 32.0}), (1, {"kind": "pcie", "width": 8, "speed": 16.0})])
        self.assertEqual(self.report()["verdicts"], [])

    def test_document_types_are_refused(self):
        laughs = '<!DOCTYPE system [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>\n<system version="1"><cpu numaid="&b;"/></system>'
        for name, text, why in (("a.xml", laughs, "declares a document type"),
                                ("b.xml", "<system><pci>" * 40, "is nested deeper"),
                                ("c.xml", SYSTEM[:300], "is no XML: line"),
                                ("d.xml", "<other/><system/>", "neither a topology nor a graph")):
            self.assertIn(why, self.take(self.file(name, text), status=3), name)


class Bad(Folder):
    def test_cut_and_bent_files_never_harm(self):
        job = Job(random.Random(2), 1, 2)
        whole = {"a.log": mixed_log(job, (2, 28), graph=True),
                 "b-pid1.log": "".join(record(0, k, 500, (1752867229000000 + 900 * k, 1752867229000500 + 900 * k), "n", "v4.2")
                                       for k in range(20)),
                 "c.xml": SYSTEM}
        rng = random.Random(11)
        for name, text in whole.items():
            data = text.encode()
            cuts = [data[:len(data) * k // 100] for k in range(0, 100, 4)]
            for _ in range(10):
                bent = bytearray(data)
                for _ in range(8):
                    bent[rng.randrange(len(bent))] ^= 1 << rng.randrange(8)
                cuts.append(bytes(bent))
            for i, cut in enumerate(cuts):
                if os.path.exists(self.db):
                    os.unlink(self.db)
                r = call("import", self.file(name, cut), "--db", self.db)
                self.assertIn(r.returncode, (0, 3), (name, i, r.stderr))
                if r.returncode == 0:
                    self.report()

    def test_a_cut_gzip_is_refused_and_leaves_nothing(self):
        job = Job(random.Random(2), 4, 2)
        packed = gzip.compress(mixed_log(job, (2, 28)).encode())
        good = self.file("good.log", record(0, 0, 500))
        self.assertIn("damaged or cut off", self.take(self.file("a.log.gz", packed[:len(packed) // 2]), good, status=5))
        self.assertEqual(self.sql("SELECT count(*) AS n FROM nccl_line"), [{"n": 0}])


class Published(Folder):
    def log(self, name):
        path = os.path.join(DATA, "nccl_logs", name)
        if not os.path.exists(path):
            self.skipTest(path + " is not there")
        with gzip.open(path, "rt", errors="replace") as f:
            return path, f.read()

    def check(self, name, n_ranks, n_channels):
        path, text = self.log(name)
        self.take(path)
        v = self.report()
        rings = self.rings()
        comm, = v["nccl"]["communicators"]
        self.assertEqual((comm["rings_complete"], comm["ranks_seen"], len(rings)), (True, n_ranks, n_channels))
        connected = set()
        for c, a, b in re.findall(r"Channel (\d+) : (\d+)\[\w+\] -> (\d+)\[\w+\]", text):
            connected.add((int(c), int(a), int(b)))
        for c, ring in rings.items():
            self.assertEqual(sorted(ring), list(range(n_ranks)))
            for a, b in zip(ring, ring[1:] + ring[:1]):
                self.assertIn((c, a, b), connected)
        for c, order in re.findall(r"Channel (\d+)/\d+ : +([\d ]+)", text):
            said = [int(x) for x in order.split()]
            self.assertEqual(rings[int(c)][:len(said)], said)
        self.assertEqual(v["verdicts"], [])
        self.assertEqual(call("report", self.db).returncode, 0)

    def test_four_ranks(self):
        self.check("n1_32gb_all_reduce_bench.txt.gz", 4, 12)

    def test_sixty_four_ranks_of_which_lines_show_twenty(self):
        self.check("n16_32gb_all_reduce_bench.txt.gz", 64, 4)

    def test_topologies_of_machines(self):
        for name in ("ndv5-topo.xml", "p4d-24xl-topo.xml"):
            path = os.path.join(DATA, "topology", name)
            if not os.path.exists(path):
                self.skipTest(path + " is not there")
            devices = list(ElementTree.parse(path).iter("pci"))
            classes = [d.get("class") for d in devices]
            links = sum(int(x.get("count")) for x in ElementTree.parse(path).iter("nvlink"))
            self.take(path)
            t, = self.report()["nccl"]["topologies"]
            self.assertEqual((t["gpus"], t["nics"], t["nvlinks"] or 0),
                             (sum(c.startswith("0x03") for c in classes), sum(c.startswith("0x02") for c in classes), links))
            self.assertEqual(self.sql("SELECT count(*) AS n FROM topo_link WHERE kind = 'pcie'")[0]["n"], len(devices))
            self.assertEqual(t["gpus_far_from_a_nic"], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
