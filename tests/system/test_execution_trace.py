#!/usr/bin/env python3
"""Execution traces through `syncline import`: nodes, edges and calls as an independent reading of the same file
has them; graphs that are none are said.

The published traces lie beside the checkout (../shared/data); without them those tests are skipped."""
import glob
import gzip
import json
import os
import subprocess
import tarfile
import tempfile
import unittest

import json_schema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
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
            f.write(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    def take(self, *paths, status=0):
        if os.path.exists(self.db):
            os.unlink(self.db)
        r = call("import", *paths, "--db", self.db, "--json")
        self.assertEqual(r.returncode, status, r.stderr)
        return json.loads(r.stdout)["inputs"]

    def rows(self, sql):
        r = call("sql", self.db, sql, "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        return json.loads(r.stdout)

    def report(self):
        r = call("report", self.db, "--json")
        self.assertIn(r.returncode, (0, 1, 4, 5), r.stderr)
        v = json.loads(r.stdout)
        with open(os.path.join(ROOT, "docs", "report.schema.json"), encoding="utf-8") as f:
            self.assertEqual(json_schema.problems(v, json.load(f)), [])
        return v["execution_traces"]

    def check(self, trace, path):
        """One file of the catalogue against this reading of it."""
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as f:
            v = json.load(f)
        nodes = v.get("nodes", v.get("workload_graph"))
        edges = []
        for n in nodes:
            mine = n.get("id", n.get("Id"))
            for key, kind in (("parent", "parent"), ("ctrl_deps", "control"), ("ctrlDeps", "control"), ("data_deps", "data")):
                before = n.get(key)
                for b in before if isinstance(before, list) else [] if before is None else [before]:
                    if b != mine:
                        edges.append((b, mine, kind))
        got = self.rows(f"SELECT id, name, is_comm FROM et_node WHERE trace = {trace} ORDER BY id")
        comm = {n.get("id", n.get("Id")) for n in nodes
                if n["name" if "name" in n else "Name"] == "record_param_comms" or n.get("NodeType", n.get("type")) in (5, 6, 7)}
        self.assertEqual([(r["id"], r["is_comm"]) for r in got],
                         sorted((n.get("id", n.get("Id")), int(n.get("id", n.get("Id")) in comm)) for n in nodes))
        for n in nodes:
            n["mine"] = n.get("name", n.get("Name"))
        self.assertEqual([r["name"] for r in got], [n["mine"][:255] for n in sorted(nodes, key=lambda n: n.get("id", n.get("Id")))])
        if len(edges) < 100000:
            rows = self.rows(f"SELECT from_id, to_id, kind FROM et_edge WHERE trace = {trace}")
            self.assertEqual(sorted((r["from_id"], r["to_id"], r["kind"]) for r in rows), sorted(edges))
        told = self.rows(f"SELECT * FROM et_trace WHERE trace = {trace}")[0]
        ids = {n.get("id", n.get("Id")) for n in nodes}
        self.assertEqual((told["n_nodes"], told["n_comms"], told["n_data"], told["n_control"], told["n_parent"], told["n_unknown"]),
                         (len(nodes), len(comm), *(sum(e[2] == k for e in edges) for k in ("data", "control", "parent")),
                          sum(e[0] not in ids for e in edges)))
        return told, nodes


def chakra_node(i, name, parent, values=(), types=(), attrs=()):
    more = [{"name": "rf_id", "type": "uint64", "value": i}, {"name": "tid", "type": "uint64", "value": 1}, *attrs]
    return {"id": i, "name": name, "ctrl_deps": parent, "inputs": {"values": list(values), "shapes": [], "types": list(types)},
            "outputs": {"values": [], "shapes": [], "types": []}, "attrs": more}


def tensor(n, size=4):
    return [11, 12, 0, n, size, "cuda:0"]


class Own(Folder):
    def test_schemata_from_1_0_1_to_1_1_1(self):
        old = {"schema": "1.0.1", "pid": 1, "nodes": [
            {"name": "[pytorch|profiler|execution_trace|thread]", "id": 2, "parent": 1, "inputs": [], "outputs": []},
            {"name": "record_param_comms", "id": 4, "parent": 2, "inputs": [[tensor(100), tensor(20)], 151, 9, 3, "allreduce", [], []],
             "outputs": [[tensor(120)]]},
            {"name": "record_param_comms", "id": 5, "parent": 2, "inputs": [151, 0, 3, "wait", [], []], "outputs": []},
            {"name": "[pytorch|profiler|execution_trace|process]", "id": 1, "parent": 1, "inputs": [], "outputs": []}]}
        inputs = self.take(self.file("et.json", old))
        self.assertEqual((inputs[0]["format"], inputs[0]["outcome"], inputs[0]["rank"]), ("execution trace", "ok", 3))
        want = {"collective": "allreduce", "comm_group": "9", "seq": 151, "n_in": 120, "n_out": 120, "bytes": 480, "dtype": None}
        self.assertEqual(self.rows(f"SELECT {', '.join(want)} FROM et_node WHERE id = 4"), [want])
        for schema, call_values, group in (
                ("1.0.2-chakra.0.0.4", [tensor(64), 7, "0", 3, "allreduce", [], []], "0"),
                ("1.0.3-chakra.0.0.4", [tensor(64), 7, ["0", "default_pg"], 3, "allreduce", [], [], 0, 1, 8], "0"),
                ("1.1.1-chakra.0.0.4", [tensor(64), 7, ["12", "tp"], 3, "allreduce", [], [], 0, 1, 8], "12")):
            nodes = [chakra_node(2, "thread", 1), chakra_node(3, "c10d::allreduce_", 2),
                     chakra_node(4, "record_param_comms", 3, call_values), chakra_node(1, "process", 1)]
            self.take(self.file("rank_3.json", {"schema": schema, "nodes": nodes}))
            want = {"collective": "allreduce", "comm_group": group, "seq": 7, "n_in": 64, "bytes": 256, "rank": 3}
            self.assertEqual(self.rows(f"SELECT {', '.join(want)} FROM et_node WHERE is_comm"), [want])
            t = self.report()[0]
            self.assertEqual((t["schema"], t["nodes"], t["control_edges"], t["parent_edges"], t["unknown_ids"], t["on_data_cycles"] + t["on_call_cycles"]),
                             (schema, 4, 3, 0, 0, 0))
        attrs = [{"name": n, "type": "string", "value": v} for n, v in
                 (("collective_name", "allgather"), ("dtype", "BFloat16"), ("in_msg_nelems", 10), ("out_msg_nelems", 80),
                  ("pg_name", "5"), ("pg_size", 8))]
        self.take(self.file("rank_3.json", {"schema": "1.1.1-chakra.0.0.4", "nodes": [
            chakra_node(4, "record_param_comms", 1, attrs=attrs), chakra_node(1, "process", 1)]}))
        want = {"collective": "allgather", "comm_group": "5", "dtype": "BFloat16", "n_in": 10, "n_out": 80}
        self.assertEqual(self.rows(f"SELECT {', '.join(want)} FROM et_node WHERE is_comm"), [want])

    def test_chakra_s_own_nodes(self):
        nodes = [{"id": "0", "name": "a", "type": "COMP_NODE", "durationMicros": "12"},
                 {"id": "1", "name": "s", "type": "COMM_SEND_NODE", "ctrlDeps": ["0"], "dataDeps": ["0"],
                  "attr": [{"name": "comm_size", "int64Val": "1024"}, {"name": "comm_src", "int32Val": 0}, {"name": "comm_dst", "int32Val": 1}]},
                 {"id": "2", "name": "c", "type": 7, "data_deps": ["0", "1"],
                  "attr": [{"name": "comm_type", "int64_val": 0}, {"name": "comm_size", "int64_val": 4096}]}]
        self.take(self.file("chakra.5.json", {"nodes": nodes}))
        self.assertEqual(self.rows("SELECT rank, id, type, dur_us, collective, bytes, source, target FROM et_node ORDER BY id"), [
            {"rank": 5, "id": 0, "type": "compute", "dur_us": 12, "collective": None, "bytes": None, "source": None, "target": None},
            {"rank": 5, "id": 1, "type": "send", "dur_us": None, "collective": None, "bytes": 1024, "source": 0, "target": 1},
            {"rank": 5, "id": 2, "type": "collective", "dur_us": None, "collective": "all_reduce", "bytes": 4096, "source": None, "target": None}])
        self.assertEqual([(t["data_edges"], t["control_edges"]) for t in self.report()], [(3, 1)])

    def test_protobuf(self):
        def varint(v):
            out = b""
            while v > 127:
                out, v = out + bytes([v & 127 | 128]), v >> 7
            return out + bytes([v])

        def field(n, v):
            return varint(n << 3) + varint(v) if isinstance(v, int) else varint(n << 3 | 2) + varint(len(v)) + v

        def attr(name, n, v):
            return field(10, field(1, name.encode()) + field(n, v))
        metadata = field(1, b"0.0.4")
        nodes = [field(1, 0) + field(2, b"a") + field(3, 4) + field(7, 12),
                 field(1, 300) + field(2, b"s") + field(3, 5) + field(4, 0) + field(5, bytes([0])) +
                 attr("comm_size", 9, 1024) + attr("comm_dst", 11, 1),
                 field(1, 2) + field(2, b"c") + field(3, 7) + field(5, varint(0) + varint(300)) + attr("comm_type", 9, 0) +
                 attr("pg_name", 29, b"7")]
        content = b"".join(varint(len(m)) + m for m in [metadata, *nodes])
        v = self.take(self.file("x.5.et", content))[0]
        self.assertEqual((v["format"], v["outcome"], v["rank"], v["events"]), ("execution trace", "ok", 5, 3))
        self.assertEqual(self.rows("SELECT id, type, dur_us, collective, comm_group, bytes, target FROM et_node ORDER BY id"), [
            {"id": 0, "type": "compute", "dur_us": 12, "collective": None, "comm_group": None, "bytes": None, "target": None},
            {"id": 2, "type": "collective", "dur_us": None, "collective": "all_reduce", "comm_group": "7", "bytes": None, "target": None},
            {"id": 300, "type": "send", "dur_us": None, "collective": None, "comm_group": None, "bytes": 1024, "target": 1}])
        t = self.report()[0]
        self.assertEqual((t["schema"], t["data_edges"], t["control_edges"]), ("0.0.4", 3, 1))
        ends, at = set(), 0  # where a message ends a shorter file is whole as well
        for m in [metadata, *nodes]:
            at += len(varint(len(m))) + len(m)
            ends.add(at)
        for cut in set(range(1, len(content), 3)) - ends:
            self.assertTrue(self.take(self.file("x.5.et", content[:cut]), status=3)[0]["outcome"])
        head = varint(len(metadata)) + metadata
        for bad in (b"\xff\xff\xff\xff\x7f", varint(15 << 20) + b"xx", b"\x02\xff\xff", b""):
            self.assertFalse(self.take(self.file("x.et", head + bad), status=3)[0]["ok"])

    def test_what_is_wrong_with_a_graph_is_counted(self):
        def node(i, *deps):
            return {"id": i, "name": f"n{i}", "data_deps": list(deps)}
        # 1 > 2 > 3 > 1 is a cycle, 4 comes behind it, 9 is nobody, 5 is there twice, 6 > 7 > 6 another
        nodes = [node(1, 3), node(2, 1), node(3, 2), node(4, 3), node(5, 9), node(5), node(6, 7, 4), node(7, 6), {"name": "no id"}]
        v = self.take(self.file("x.json", {"nodes": nodes}))[0]
        self.assertIn("1 nodes have no id", v["outcome"])
        t = self.report()[0]
        # 4 is between the two cycles
        self.assertEqual((t["nodes"], t["unknown_ids"], t["duplicate_ids"], t["on_data_cycles"], t["on_call_cycles"]), (8, 1, 1, 6, 0))
        self.assertIn("CYCLES OF DATA", call("report", self.db).stdout)

    def test_several_ranks_and_one_twice(self):
        def one(i):
            return {"schema": "1.0.1", "nodes": [{"id": 1, "name": f"of {i}", "parent": 1}]}
        paths = [self.file(f"et_{i}.json", one(i)) for i in range(3)]
        self.assertEqual([i["rank"] for i in self.take(*paths)], [0, 1, 2])
        self.assertEqual([(t["rank"], t["nodes"]) for t in self.report()], [(0, 1), (1, 1), (2, 1)])
        again = self.take(*paths, self.file("rank-2.json", {**one(2), "pid": 7}), status=5)
        self.assertIn("is of rank 2, and so was an execution trace before it", again[3]["outcome"])

    def test_a_rank_that_nothing_tells_is_null(self):
        v = self.take(self.file("resnet50.json", {"schema": "1.0.1", "nodes": [{"id": 1, "name": "a", "parent": 1}]}))[0]
        self.assertIsNone(v["rank"])
        self.assertEqual(self.report()[0]["rank"], None)

    def test_a_bad_file_is_refused_with_a_sentence(self):
        good = json.dumps({"schema": "1.0.1", "nodes": [{"id": i, "name": "a", "parent": 1} for i in range(50)]}).encode()
        for at in range(1, 100, 7):
            v = self.take(self.file("x.json", good[:len(good) * at // 100]), status=3)[0]
            self.assertFalse(v["ok"])
            self.assertTrue(v["outcome"])
        for bad in (b'{"nodes": 5, "id": 1}', b'{"nodes": [], "id": 1}', b'{"nodes": [[{"id": 1}]], "id": 1}'):
            self.assertFalse(self.take(self.file("x.json", bad), status=3)[0]["ok"])


@unittest.skipUnless(os.path.isdir(os.path.join(DATA, "execution_trace")), "the published traces are not beside the checkout")
class Published(Folder):
    def unpack(self, *path):
        with tarfile.open(os.path.join(DATA, "execution_trace", *path)) as t:
            t.extractall(self.dir)

    def test_dlrm_of_eight_ranks(self):
        self.unpack("param_dlrm_8rank", "dlrm_pytorch_et.tar.gz")
        paths = sorted(glob.glob(os.path.join(self.dir, "dlrm_pytorch_et", "*.json")))
        self.assertEqual([i["rank"] for i in self.take(*paths)], list(range(8)))
        for i, path in enumerate(paths):
            told, nodes = self.check(i, path)
            self.assertEqual((told["rank"], told["schema"], told["n_data_cyclic"] + told["n_call_cyclic"], told["n_duplicate"]), (i, "1.0.1", 0, 0))
            calls = {n["id"]: n["inputs"] for n in nodes if n["name"] == "record_param_comms"}
            got = self.rows(f"SELECT id, collective, seq FROM et_node WHERE is_comm AND trace = {i}")
            for row in got:
                self.assertIn(row["collective"], calls[row["id"]])
                self.assertIn(row["seq"], calls[row["id"]])

    def test_chakra_s_workload_graphs(self):
        self.unpack("chakra", "json_trace.tar.gz")
        for name in ("small_chakra.0.json", "chakra.0.json"):
            path = os.path.join(self.dir, "jsonData", name)
            self.assertEqual(self.take(path)[0]["rank"], 0)
            self.check(0, path)

    def test_chakra_as_protobuf_is_the_same_graph_as_its_json(self):
        self.unpack("chakra", "json_trace.tar.gz")
        self.unpack("chakra", "feeder_tests_trace.tar.gz")
        with open(os.path.join(self.dir, "jsonData", "chakra.0.json"), encoding="utf-8") as f:
            nodes = json.load(f)["workload_graph"]
        self.take(os.path.join(self.dir, "tests", "data", "chakra.0.et"))
        told = self.rows("SELECT * FROM et_trace")[0]
        self.assertEqual((told["n_nodes"], told["n_data"], told["n_data_cyclic"]),
                         (len(nodes), sum(len(n["data_deps"]) for n in nodes), 0))
        got = {r["id"]: (r["type"], r["dur_us"]) for r in self.rows("SELECT id, type, dur_us FROM et_node")}
        types = {4: "compute", 7: "collective"}
        self.assertEqual(got, {n["Id"]: (types[n["NodeType"]], n.get("runtime") or None) for n in nodes})

    def test_the_ring_of_eight(self):
        paths = [os.path.join(DATA, "execution_trace", "astra_ring_8", f"custom_allreduce.{i}.et.gz") for i in range(8)]
        self.assertEqual([i["rank"] for i in self.take(*paths)], list(range(8)))
        rows = self.rows("SELECT DISTINCT rank, source, target FROM et_node WHERE is_comm ORDER BY rank, source")
        ring = {(i, (i + 1) % 8) for i in range(8)}
        self.assertEqual({(r["rank"], r["target"]) for r in rows if r["target"] is not None}, ring)
        self.assertEqual({(r["source"], r["rank"]) for r in rows if r["source"] is not None}, ring)

    def test_param_s_benchmark(self):
        path = os.path.join(DATA, "kineto", "execution_trace", "benchmark_simple_add_et.json.gz")
        self.assertIsNone(self.take(path)[0]["rank"])
        self.assertEqual(self.check(0, path)[0]["n_parent"], 37)


if __name__ == "__main__":
    unittest.main()
