#!/usr/bin/env python3
"""Memory snapshots through `syncline import`: each cause of a refused allocation, and none where there is none.

Cuts of recordings (tests/data/import/memory_*) are held against what PyTorch itself said in its exceptions; the rest are
snapshots of an allocator that is played here."""
import csv
import gzip
import io
import json
import os
import pickle
import re
import subprocess
import tempfile
import unittest

import json_schema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
DATA = os.path.join(ROOT, "tests", "data", "import")
MIB = 1 << 20
T0_US = 1790000000000000
BASE = 1 << 44


def call(*words):
    return subprocess.run([SYNCLINE, *words], text=True, capture_output=True, timeout=120)


def frames(line, file="/job/train.py"):
    return [{"name": "empty", "filename": "/x/site-packages/torch/functional.py", "line": 3},
            {"name": "step", "filename": file, "line": line}]


class Heap:
    """One large segment for each add(), blocks cut from it in order."""

    def __init__(self, limit_mib=1 << 20, times=True):
        self.segments, self.trace, self.times = [], [], times
        self.limit, self.next, self.n = limit_mib * MIB, BASE, 0

    def event(self, action, size, line, addr=None, **more):
        e = {"action": action, "size": size, "stream": 0, "frames": frames(line), **more}
        if addr is not None:
            e["addr"] = addr
        if self.times:
            e["time_us"] = T0_US + self.n
        self.n += 1
        self.trace.append(e)

    def segment(self, mib, line=1):
        s = {"address": self.next, "size": mib * MIB, "blocks": []}
        self.next += 1 << 32
        self.segments.append(s)
        self.event("segment_alloc", s["size"], line, s["address"])
        return s

    def alloc(self, mib, line, segment=None):
        segment = segment or self.segment(mib, line)
        end = max([b["address"] + b["size"] for b in segment["blocks"]], default=segment["address"])
        assert end + mib * MIB <= segment["address"] + segment["size"]
        b = {"address": end, "size": mib * MIB, "line": line, "live": True}
        segment["blocks"].append(b)
        self.event("alloc", b["size"], line, end)
        return b

    def free(self, b, line=99):
        self.event("free_requested", b["size"], line, b["address"])
        self.event("free_completed", b["size"], line, b["address"])
        b["live"] = False

    def oom(self, mib, line, device_free_mib):
        """Segments that nothing is in are given back before."""
        for s in [s for s in self.segments if not any(b["live"] for b in s["blocks"])]:
            self.event("segment_free", s["size"], line, s["address"])
            self.segments.remove(s)
        self.event("oom", mib * MIB, line, device_free=device_free_mib * MIB)

    def parts(self, s):
        """Blocks as PyTorch has them: free neighbours are one."""
        at, out = s["address"], []
        for b in [b for b in s["blocks"] if b["live"]] + [None]:
            to = b["address"] if b else s["address"] + s["size"]
            if to > at:
                out.append({"address": at, "size": to - at, "requested_size": 0, "state": "inactive", "frames": []})
            if b:
                out.append({"address": to, "size": b["size"], "requested_size": b["size"],
                            "state": "active_allocated", "frames": frames(b["line"])})
                at = to + b["size"]
        return out

    def tree(self, device=0, settings=True, **change):
        out = []
        for s in self.segments:
            live = sum(b["size"] for b in s["blocks"] if b["live"])
            out.append({"device": device, "address": s["address"], "total_size": s["size"], "allocated_size": live,
                        "active_size": live, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                        "is_expandable": False, "frames": [], "blocks": self.parts(s)})
        tree = {"segments": out, "device_traces": [[] for _ in range(device)] + [self.trace]}
        if settings:
            tree["allocator_settings"] = {"max_split_size": -1, "roundup_power2_divisions": {"1": 0}}
        tree.update(change)
        return tree


def growth(n=40, **how):
    h = Heap(**how)
    for i in range(6):
        h.alloc(4, 10)
    for i in range(n):
        t = h.alloc(2, 20)
        h.free(t)
        h.alloc(16, 30)
    return h


def fragmented(**how):
    h = Heap(**how)
    kept = []
    for i in range(30):
        s = h.segment(20)
        kept.append([h.alloc(6, 40, s), h.alloc(6, 40, s), h.alloc(6, 40, s)])
    for a, b, c in kept:
        h.free(a)
        h.free(c)
    return h


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._dir = tempfile.TemporaryDirectory()
        self.addCleanup(self._dir.cleanup)
        self.dir, self.n = self._dir.name, 0

    def write(self, tree, name="snapshot_rank0.pickle", protocol=4):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(pickle.dumps(tree, protocol))
        return path

    def load(self, *paths, status=0):
        self.n += 1
        self.db = os.path.join(self.dir, f"{self.n}.db")
        r = call("import", *paths, "--db", self.db, "--json")
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        self.outcomes = [f["outcome"] for f in json.loads(r.stdout)["inputs"]] if r.stdout else []
        if status == 3:
            return None
        r = call("report", self.db, "--json")
        self.assertIn(r.returncode, (0, 1, 4, 5), r.stderr)
        report = json.loads(r.stdout)
        with open(os.path.join(ROOT, "docs", "report.schema.json")) as f:
            self.assertEqual(json_schema.problems(report, json.load(f)), [])
        self.verdicts = [v["class"] for v in report["verdicts"] if v["severity"] != "notice"]
        return report["memory"]

    def sql(self, text):
        r = call("sql", self.db, text)
        self.assertEqual(r.returncode, 0, r.stderr)
        return list(csv.DictReader(io.StringIO(r.stdout)))


class Made(Case):
    def test_held_by_one_place(self):
        h = growth()
        h.oom(16, 30, 3)
        m = self.load(self.write(h.tree()))
        (o,) = m["refused"]
        self.assertEqual((o["cause"], o["capped"], o["n_held"], o["held_bytes"]), ("held_by_one_place", 0, 40, 640 * MIB))
        self.assertEqual((o["allocated_bytes"], o["allocated_err_bytes"]), ((24 + 640) * MIB, 0))
        self.assertEqual(o["reserved_bytes"], (24 + 640) * MIB)
        self.assertIn("640.00 MiB is held by 40 blocks of /job/train.py:30 step; none was freed", o["sentence"])
        self.assertNotIn("leak", o["sentence"])
        self.assertEqual(self.verdicts, [])
        text = call("report", self.db).stdout
        self.assertIn(o["sentence"], text)

    def test_fragmentation(self):
        for free_mib, capped in ((5, 0), (90000, 1)):
            h = fragmented()
            h.oom(300, 50, free_mib)
            (o,) = self.load(self.write(h.tree()))["refused"]
            self.assertEqual((o["cause"], o["capped"], o["largest_free_bytes"]), ("fragmentation", capped, 8 * MIB))
            self.assertEqual((o["allocated_bytes"], o["reserved_bytes"]), (180 * MIB, 600 * MIB))
            self.assertEqual("a cap of the process" in o["sentence"], capped == 1)
            self.assertEqual(self.verdicts, ["memory.fragmentation"])

    def test_what_is_free_in_a_graph_s_pool_is_no_fragmentation(self):
        h = fragmented()
        h.oom(300, 50, 5)
        tree = h.tree()
        for s in tree["segments"]:
            s["segment_pool_id"] = (0, 1)
        (o,) = self.load(self.write(tree))["refused"]
        self.assertEqual(o["cause"], "not_enough_evidence")
        self.assertIn("CUDA graphs", o["sentence"])
        self.assertEqual(self.verdicts, [])

    def test_own_cap(self):
        h = growth(n=3)
        h.oom(500, 50, 90000)
        (o,) = self.load(self.write(h.tree()))["refused"]
        self.assertEqual((o["cause"], o["capped"]), ("own_cap", 1))

    def test_request_too_large(self):
        h = growth()
        h.oom(5000, 50, 1000)
        (o,) = self.load(self.write(h.tree()))["refused"]
        self.assertEqual((o["cause"], o["capped"]), ("request_too_large", 0))

    def test_others_hold_the_device(self):
        """The process has little and the device is full: a snapshot cannot tell of whom."""
        h = growth(n=5)
        h.oom(64, 50, 10)
        (o,) = self.load(self.write(h.tree()))["refused"]
        self.assertEqual((o["cause"], o["capped"]), ("not_enough_evidence", 0))
        self.assertIn("other processes", o["sentence"])
        self.assertEqual(self.verdicts, [])

    def test_a_place_that_frees_is_not_the_cause(self):
        h = Heap()
        live = [h.alloc(16, 30) for _ in range(40)]
        h.free(live[3])
        h.oom(64, 50, 10)
        (o,) = self.load(self.write(h.tree()))["refused"]
        self.assertEqual(o["cause"], "not_enough_evidence")
        self.assertEqual(self.verdicts, [])

    def test_a_model_that_was_there_before_is_not_the_cause(self):
        """Most is held by what was allocated once, at the begin."""
        h = Heap()
        for _ in range(40):
            h.alloc(16, 10)
        for _ in range(200):
            h.free(h.alloc(2, 20))
        h.oom(64, 20, 10)
        (o,) = self.load(self.write(h.tree()))["refused"]
        self.assertEqual((o["cause"], o["n_held"]), ("not_enough_evidence", 40))

    def test_healthy(self):
        h = growth()
        m = self.load(self.write(h.tree()))
        self.assertEqual(m["refused"], [])
        self.assertEqual(self.verdicts, [])
        self.assertEqual(m["sites"][0], {"rank": 0, "device": 0, "site": "/job/train.py:30 step", "n_live": 40,
                                         "live_bytes": 640 * MIB, "n_allocated": 40, "allocated_bytes": 640 * MIB,
                                         "n_freed": 0, "freed_bytes": 0})

    def test_survived_refusals_are_no_verdict(self):
        """An older refusal by fragmentation that was caught; the last one is another."""
        h = fragmented()
        h.oom(300, 50, 5)
        for i in range(40):
            h.alloc(64, 60)
        h.oom(64, 60, 5)
        m = self.load(self.write(h.tree()))
        self.assertEqual([o["cause"] for o in m["refused"]], ["held_by_one_place", "fragmentation"])
        self.assertEqual(self.verdicts, [])
        self.assertIn("1 earlier refusal", call("report", self.db).stdout)

    def test_lost_begin(self):
        h = fragmented()
        h.oom(300, 50, 5)
        whole = self.load(self.write(h.tree()))["refused"]
        del h.trace[:len(h.trace) // 2]
        cut = self.load(self.write(h.tree()))["refused"]
        for key in ("allocated_bytes", "reserved_bytes", "largest_free_bytes", "cause"):
            self.assertEqual(cut[0][key], whole[0][key])

    def test_events_after_the_refusal(self):
        """What was freed afterwards counts as in use; how it was rounded has a bound."""
        h = fragmented()
        h.oom(300, 50, 5)
        for s in h.segments:
            for b in s["blocks"]:
                if b["live"]:
                    h.free(b)
        (o,) = self.load(self.write(h.tree()))["refused"]
        self.assertEqual((o["allocated_bytes"], o["reserved_bytes"]), (180 * MIB, 600 * MIB))
        self.assertEqual(o["allocated_err_bytes"], 30 * MIB)
        self.assertEqual(o["cause"], "fragmentation")

    def test_old_releases(self):
        h = growth(times=False)
        h.oom(16, 30, 3)
        tree = h.tree(settings=False)
        for s in tree["segments"]:
            del s["segment_pool_id"], s["is_expandable"]
            for b in s["blocks"]:
                b.pop("address")
                b.pop("requested_size")
                f = b.pop("frames")
                if b["state"] != "inactive":
                    b["history"] = [{"addr": 1, "real_size": b["size"], "frames": f}]
        (o,) = self.load(self.write(tree, protocol=2))["refused"]
        self.assertEqual((o["cause"], o["at_ns"], o["n_held"]), ("held_by_one_place", None, 40))
        self.assertEqual(self.sql("SELECT count(*) AS n FROM memory_event WHERE at_ns IS NOT NULL")[0]["n"], "0")
        self.assertEqual(self.sql("SELECT count(*) AS n FROM memory_segment WHERE expandable IS NULL")[0]["n"], "46")

    def test_no_history(self):
        for traces in ([[]], []):
            m = self.load(self.write(growth().tree(device_traces=traces)))
            self.assertEqual((m["refused"], m["devices"][0]["events"]), ([], 0))
            self.assertIn("not recorded", self.outcomes[0])
            self.assertIn("without a recorded history", call("report", self.db).stdout)
            self.assertEqual(m["sites"][0]["n_live"], 40)

    def test_whose_it_is(self):
        a, b = growth(n=9), growth(n=12)
        paths = [self.write(a.tree(device=3), "mem_rank5.pickle"), self.write(b.tree(), "mem_rank6.pickle")]
        m = self.load(*paths)
        self.assertEqual([(d["rank"], d["device"]) for d in m["devices"]], [(5, 3), (6, 0)])
        m = self.load(self.write(a.tree(device=3), "snapshot.pickle"))
        self.assertEqual((m["devices"][0]["rank"], m["devices"][0]["rank_from"]), (0, "assumed"))
        self.assertIn("taken as rank 0", self.outcomes[0])
        self.load(paths[0], self.write(b.tree(), "later_rank5.pickle"), status=5)
        self.assertIn("is of rank 5, and so was", self.outcomes[1])

    def test_newest_events_and_every_refusal_are_kept(self):
        h = Heap()
        h.oom(100, 1, 5)
        for _ in range(3000):
            h.free(h.alloc(1, 20))
        m = self.load(self.write(h.tree()))
        self.assertEqual(m["devices"][0]["events"], 12001)
        self.assertEqual(m["devices"][0]["left_out"], 7000)
        rows = self.sql("SELECT action, seq FROM memory_event ORDER BY seq")
        self.assertEqual((len(rows), rows[0]["action"], rows[1]["seq"]), (5001, "oom", "7001"))

    def test_what_contradicts_itself_is_refused(self):
        def hole(t):
            t["segments"][0]["blocks"][0]["size"] -= 512

        def beyond(t):
            t["segments"][0]["total_size"] = 1 << 60

        def inside(t):
            t["segments"][1]["address"] = t["segments"][0]["address"]
            for b in t["segments"][1]["blocks"]:
                b["address"] = t["segments"][0]["address"]

        def no_size(t):
            t["device_traces"][0][0]["size"] = -1

        def no_device(t):
            t["segments"][0]["device"] = 1 << 40

        for spoil in (hole, beyond, inside, no_size, no_device):
            tree = pickle.loads(pickle.dumps(growth().tree()))
            spoil(tree)
            self.load(self.write(tree), status=3)

    def test_a_history_that_does_not_fit(self):
        h = growth()
        h.oom(16, 30, 3)
        h.event("alloc", 512, 30, 12345)
        (o,) = self.load(self.write(h.tree()))["refused"]
        self.assertEqual((o["allocated_bytes"], o["cause"]), (None, "not_enough_evidence"))
        self.assertEqual(self.verdicts, [])


class Recorded(Case):
    """Cuts of snapshots of an H200, torch 2.11, by tests/data/import/make_memory.py."""

    def said(self, name):
        with open(os.path.join(DATA, name)) as f:
            text = f.read()
        unit = {"MiB": MIB, "GiB": 1 << 30}
        find = lambda p: (lambda m: (float(m[1]) * unit[m[2]], 0.0051 * unit[m[2]]))(re.search(p, text))
        number = r"([0-9.]+) ([MG]iB)"
        return (find("allocate " + number), find("which " + number + " is free"), find("memory " + number + " is allocated by"),
                find("and " + number + " is reserved by PyTorch but unallocated"))

    def check(self, o, name):
        have = (o["asked_bytes"], o["device_free_bytes"], o["allocated_bytes"], o["reserved_bytes"] - o["allocated_bytes"])
        for got, (want, within) in zip(have, self.said(name)):
            self.assertAlmostEqual(got, want, delta=within)

    def test_fine(self):
        m = self.load(os.path.join(DATA, "memory_fine_rank0.pickle.gz"))
        self.assertEqual((m["refused"], self.verdicts), ([], []))

    def test_growth(self):
        (o,) = self.load(os.path.join(DATA, "memory_oom_growth_rank0.pickle.gz"))["refused"]
        self.check(o, "memory_oom_growth_rank0.txt")
        self.assertEqual((o["cause"], o["capped"], o["site"]), ("held_by_one_place", 1, "/job/rec.py:56 <module>"))
        self.assertEqual(self.verdicts, [])

    def test_fragmentation(self):
        refused = self.load(os.path.join(DATA, "memory_oom_frag_rank0.pickle.gz"))["refused"]
        self.check(refused[0], "memory_oom_frag_rank0.txt")
        self.assertEqual([o["cause"] for o in refused], ["fragmentation", "held_by_one_place", "held_by_one_place"])
        self.assertEqual(self.verdicts, ["memory.fragmentation"])
        # The first refusal is 1600 events and 300 segments before the end, and what PyTorch said of it is another file.
        self.check(refused[2], "memory_oom_growth_rank0.txt")
        self.assertEqual(refused[2]["allocated_err_bytes"], 0)

    def test_ring_that_lost_its_begin(self):
        refused = self.load(os.path.join(DATA, "memory_oom_frag_ring_rank0.pickle.gz"))["refused"]
        self.check(refused[0], "memory_oom_frag_rank0.txt")
        self.assertEqual(refused[0]["cause"], "fragmentation")

    def test_history_ends_in_nothing(self):
        """The history of `fine` is whole: undone, nothing is left."""
        with gzip.open(os.path.join(DATA, "memory_fine_rank0.pickle.gz")) as f:
            tree = pickle.load(f)
        tree["device_traces"][0].insert(0, {"action": "oom", "size": 512, "stream": 0, "frames": [], "device_free": 1})
        (o,) = self.load(self.write(tree))["refused"]
        self.assertEqual((o["allocated_bytes"], o["allocated_err_bytes"], o["reserved_bytes"]), (0, 0, 0))


if __name__ == "__main__":
    unittest.main()
