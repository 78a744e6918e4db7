#!/usr/bin/env python3
"""Flight Recorder dumps through `syncline import`: who is blamed, and who is not.

The published incidents and the recordings of two GPUs lie beside the checkout (../shared/data); without them those
tests are skipped. All other dumps are made here."""
import copy
import io
import json
import os
import pickle
import random
import subprocess
import tarfile
import tempfile
import unittest

import json_schema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
DATA = os.path.join(os.path.dirname(ROOT), "shared", "data")
T0 = 1790000000000000000
STUCK = "stuck.localised_cause_unknown"


def call(*words):
    return subprocess.run([SYNCLINE, *words], text=True, capture_output=True, timeout=120)


class Dumps:
    """Dumps of a job, filled call by call. Groups: name to (description, ranks)."""

    def __init__(self, world, groups=None, version="2.10", status=True):
        self.groups = {"0": ("default_pg", list(range(world))), **(groups or {})}
        self.version = version
        self.status = status
        self.entries = {r: [] for r in range(world)}
        self.numbers = {}

    def ids(self, rank):
        """The rank's own numbers of its groups, in the order in which they were made."""
        mine = sorted((n for n, (_, ranks) in self.groups.items() if rank in ranks), key=int)
        return {n: 3 * i if i else 0 for i, n in enumerate(mine)}

    def call(self, rank, op="all_reduce", group="0", state="completed", seq=None, ins=((8,),), outs=None, dtype="Float",
             more=None):
        message = op.startswith(("send", "recv"))
        key = (rank, group, message)
        seq = self.numbers.get(key, 0) + 1 if seq is None else seq
        self.numbers[key] = max(seq, self.numbers.get(key, 0))
        n = len(self.entries[rank])
        self.entries[rank].append({
            "record_id": n, "pg_id": self.ids(rank)[group], "process_group": (group, self.groups[group][0]),
            "collective_seq_id": 0 if message else seq, "p2p_seq_id": seq if message else 0, "op_id": n,
            "profiling_name": "nccl:" + op, "time_created_ns": T0 + 1000000 * n + rank,
            "input_sizes": [list(x) for x in ins], "output_sizes": [list(x) for x in (ins if outs is None else outs)],
            "input_dtypes": [dtype], "output_dtypes": [dtype], "state": state,
            "time_discovered_started_ns": None if state == "scheduled" else T0 + 1000000 * n + 90000000,
            "time_discovered_completed_ns": T0 + 1000000 * n + 95000000 if state == "completed" else None,
            "retired": state == "completed", "timeout_ms": 600000, "is_p2p": message, "thread_id": "1",
            "thread_name": "pt_main", "frames": [
                {"name": "all_reduce", "filename": "/x/site-packages/torch/distributed/c10d.py", "line": 9},
                {"name": "step", "filename": "/home/a/train.py", "line": 30 + n}], **(more or {})})
        return self

    def all(self, *ranks, **words):
        for r in ranks or self.entries:
            self.call(r, **words)
        return self

    def dump(self, rank, only_active=False):
        entries = [e for e in self.entries[rank] if not only_active or e["state"] != "completed"]
        ids = self.ids(rank)
        status = {}
        for name, i in ids.items():
            mine = [e for e in self.entries[rank] if e["process_group"][0] == name]
            seqs = [e["p2p_seq_id"] or e["collective_seq_id"] for e in mine]
            done = [e["p2p_seq_id"] or e["collective_seq_id"] for e in mine if e["state"] == "completed"]
            status[str(i)] = {"last_enqueued_collective": max(seqs, default=-1), "last_started_collective": -1,
                              "last_completed_collective": max(done, default=-1)}
        v = {"version": self.version, "comm_lib_version": "2.28.9", "pg_config": {
            n: {"name": n, "desc": self.groups[n][0], "ranks": str(self.groups[n][1])} for n in ids}, "entries": entries}
        if self.status:
            v["pg_status"] = status
        return v


def old(v):
    """As version 1.x has it: one number, no group but the rank's own, no status."""
    entries = []
    for e in v["entries"]:
        e = dict(e)
        e["seq_id"] = e.pop("p2p_seq_id") or e.pop("collective_seq_id")
        for k in ("process_group", "collective_seq_id", "is_p2p", "input_dtypes", "output_dtypes", "timeout_ms", "thread_id"):
            e.pop(k, None)
        entries.append(e)
    return {"version": "1.5", "entries": entries}


class Folder(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._dir = tempfile.TemporaryDirectory()
        self.addCleanup(self._dir.cleanup)
        self.dir = self._dir.name
        self.n = 0

    def write(self, dumps, name="nccl_trace_rank_{}", to=lambda v: pickle.dumps(v, 2)):
        """{rank: tree} as files."""
        self.n += 1
        folder = os.path.join(self.dir, f"job{self.n}")
        os.mkdir(folder)
        paths = []
        for rank, tree in dumps.items():
            paths.append(os.path.join(folder, name.format(rank)))
            with open(paths[-1], "wb") as f:
                f.write(to(tree))
        return paths

    def judge(self, paths, *options, status=0):
        db = os.path.join(self.dir, f"job{self.n}.db")
        if os.path.exists(db):
            os.unlink(db)
        r = call("import", *paths, "--db", db, *options)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        self.db = db
        r = call("report", db, "--json")
        self.assertIn(r.returncode, (0, 1, 4, 5), r.stderr)
        self.last = json.loads(r.stdout)
        return self.last["verdicts"]

    def check(self, dumps, *want, **how):
        """want: (class, ranks, group, call) of each verdict above a notice."""
        got = self.judge(self.write(dumps, **how))
        self.assertEqual([(v["class"], v["culprit"]["ranks"], v["culprit"]["group"], v["culprit"]["call"])
                          for v in got if v["severity"] != "notice"], list(want))
        return got


def job(world=4, n=20, **words):
    """n calls that all have made."""
    d = Dumps(world, **words)
    for i in range(n):
        d.all(ins=((8 + i % 5,),))
    return d


def every(d, only_active=False, but=()):
    return {r: d.dump(r, only_active) for r in d.entries if r not in but}


class Verdicts(Folder):
    def test_healthy_jobs_are_left_alone(self):
        self.check(every(job()))
        d = job()
        d.all(state="started").all(state="scheduled").all(state="scheduled")
        for only_active in (False, True):
            self.check(every(d, only_active))
        self.check({r: {**d.dump(r), "entries": []} for r in d.entries})
        self.check({0: {"version": "2.10", "entries": [], "pg_config": {}, "pg_status": {}, "comm_lib_version": ""}})

    def test_who_has_not_come_is_named_in_every_version_and_form(self):
        d = job()
        d.all(0, 1, 3, state="started", ins=((77,),))
        want = (STUCK, [2], "0", 21)
        for version in ("2.0", "2.4", "2.9", "2.10"):
            d.version = version
            self.check(every(d), want)
            self.check(every(d, True), want)
        self.check({r: old(v) for r, v in every(d).items()}, want)
        self.check(every(d), want, to=lambda v: json.dumps(v).encode(), name="rank{}.json")
        self.check({r: old(v)["entries"] for r, v in every(d).items()}, want)
        for protocol in (0, 3, 4, 5):
            self.check(every(d), want, to=lambda v: pickle.dumps(v, protocol))
        d.status = False
        self.check(every(d, True), want)
        v, = self.check(every(d), want)
        self.assertIn("in which 3 others wait", v["sentence"])
        self.assertEqual(v["confidence"], "likely")

    def test_the_rank_is_in_the_file_s_name(self):
        d = job()
        d.all(0, 1, 3, state="started")
        for name in ("_dump_{}", "node12_rank_{}", "fr_x_rank{}.pkl", "nccl_trace_rank_{}", "comm_lib_trace_rank_{}",
                     "h-17_dump_{}.pickle", "rank_{}_node9", "gpu8.cluster7.rank{}", "{}.pkl", "frank5_dump_{}"):
            self.check(every(d), (STUCK, [2], "0", 21), name=name)
        d = Dumps(2)
        d.call(0, "send 0->1", state="started").call(1, "recv 1<-0", state="started")
        paths = self.write(every(d), name="part{}")
        for p, q in zip(paths, "ab"):
            os.rename(p, os.path.join(self.dir, q))
        self.judge([os.path.join(self.dir, q) for q in "ab"])
        self.assertEqual([i["rank"] for i in self.last["coverage"]["inputs"]], [0, 1]) # by "send 0->1"
        with open(os.path.join(self.dir, "c"), "wb") as f:
            pickle.dump(job().dump(0), f)
        r = call("import", os.path.join(self.dir, "c"), "--db", os.path.join(self.dir, "c.db"))
        self.assertEqual(r.returncode, 3)
        self.assertIn("neither its name nor its entries tell", r.stdout)

    def test_two_dumps_of_one_rank(self):
        a, later = self.write(every(job())), job()
        later.all(0)
        b = self.write({0: later.dump(0)})
        self.judge(a + b, status=5)
        self.assertIn("is of rank 0, and so was a dump before it", self.last["coverage"]["inputs"][-1]["outcome"])

    def test_a_missing_dump_is_said_and_nobody_blamed_for_it(self):
        d = job()
        d.all(0, 1, 3, state="started")
        for only_active in (False, True):
            v, = self.check(every(d, only_active, but=(2,)))
            self.assertEqual((v["class"], v["severity"], v["confidence"], v["culprit"]["ranks"]),
                             (STUCK, "notice", "insufficient", []))
            self.assertIn("Of rank 2 there is no dump", v["sentence"])
            self.assertIn({"dumps": 3, "missing_dumps": [2]}, v["evidence"])
            self.assertEqual(v["coverage"]["ranks_silent"], 1)
            v, = self.check(every(d, only_active, but=(3,)), (STUCK, [2], "0", 21))
            self.assertIn("Of rank 3 there is no dump", v["sentence"])
            self.assertIn({"dumps": 3, "missing_dumps": [3]}, v["evidence"])

    def test_who_waits_elsewhere_is_a_consequence(self):
        groups = {"1": ("DP", [0, 2]), "2": ("DP", [1, 3]), "3": ("TP", [0, 1]), "4": ("TP", [2, 3])}
        d = job(groups=groups)
        for g, (_, ranks) in groups.items():
            d.all(*ranks, group=g)
        # 3 has not come to its DP call; 1 waits in it, so 0 waits for 1, and 2 for 0.
        d.call(1, group="2", state="started").call(0, group="3", state="started").call(2, group="1", state="started")
        for only_active in (False, True):
            self.check(every(d, only_active), (STUCK, [3], "2", 2))
        # The dump of who is waited for is not there: 1 and 0 are not blamed for it.
        v, = self.check(every(d, but=(3,)))
        self.assertEqual((v["confidence"], v["culprit"]["ranks"]), ("insufficient", []))

    def test_two_at_once_in_two_groups(self):
        groups = {"1": ("TP", [0, 1, 2]), "2": ("TP", [3, 4, 5])}
        d = job(6, groups=groups)
        d.all(0, 1, group="1", state="started").all(3, 4, group="2", state="started")
        self.check(every(d, True), (STUCK, [2, 5], "1", 1))

    def test_groups_in_opposite_order(self):
        d = job(2, groups={"1": ("A", [0, 1]), "2": ("B", [0, 1])})
        d.call(0, group="1", state="started").call(1, group="2", state="started")
        v, = self.check(every(d), ("deadlock.group_order", [0, 1], None, None))
        self.assertIn("rank 0 waits for rank 1, rank 1 for rank 0", v["sentence"])

    def test_one_call_too_many_or_all_others_hang(self):
        d = job(4)
        d.call(0, state="started")
        v, = self.check(every(d), (STUCK, [], "0", 21))
        self.assertEqual(v["confidence"], "too_close")
        self.assertIn("Only 1 of 4 ranks", v["sentence"])


class Messages(Folder):
    """Pipelines of stages."""

    def test_a_stage_that_does_not_come(self):
        groups = {str(10 + i): ("PIPELINE", [i, i + 1]) for i in range(3)}
        d = job(groups=groups)
        for k in range(3):
            for i in range(3):
                d.call(i, "send 0->1", group=str(10 + i)).call(i + 1, "recv 1<-0", group=str(10 + i))
        # Stage 2 hangs in what it computes: 1 sends to it, 3 receives from it, 0 sends to 1.
        d.call(1, "send 0->1", group="11", state="started").call(3, "recv 1<-0", group="12", state="started")
        d.call(0, "send 0->1", group="10", state="scheduled")
        for only_active in (False, True):
            got = self.check(every(d, only_active), (STUCK, [2], "12", 4))
        self.assertIn("message 4 of group 12 (PIPELINE)", got[0]["sentence"])

    def test_numbers_of_the_job_s_group_are_the_job_s_ranks(self):
        d = job()
        for k in range(3):
            d.call(0, "send 0->3").call(3, "recv 3<-0")
        d.call(0, "send 0->3", state="started")
        self.check(every(d), (STUCK, [3], "0", 4))

    def test_a_rank_with_two_peers_counts_otherwise_than_they(self):
        d = job(3)
        for k in range(5):
            d.call(0, "send 0->1").call(1, "recv 1<-0").call(1, "send 1->2").call(2, "recv 2<-1")
        d.call(0, "send 0->1", state="started").call(1, "recv 1<-0", state="started")
        d.call(1, "send 1->2", state="scheduled").call(2, "recv 2<-1", state="started")
        self.check(every(d))
        self.check(every(d, True))
        d.call(0, "send 0->1", state="scheduled")
        self.check(every(d, True), (STUCK, [1], "0", 7))

    def test_both_send_first(self):
        d = job(2)
        d.call(0, "send 0->1", state="started").call(1, "send 1->0", state="started")
        for only_active in (False, True):
            self.check(every(d, only_active), ("deadlock.p2p_order", [0, 1], None, None))

    def test_coalesced_messages_share_a_number(self):
        d = job(2)
        for r, peer in ((0, 1), (1, 0)):
            d.call(r, f"send {r}->{peer}", seq=1, state="started").call(r, f"recv {r}<-{peer}", seq=1, state="started")
            d.call(r, "coalesced", state="started", seq=1, more={"is_p2p": True, "p2p_seq_id": 1})
        self.check(every(d))


class Calls(Folder):
    def one(self, want, rank=1, world=4, only_active=False, **other):
        """A call that one rank makes otherwise."""
        d = job(world)
        for r in range(world):
            d.call(r, state="started", **{**dict(ins=((64,),)), **(other if r == rank else {})})
        return self.check(every(d, only_active), *want)

    def test_type_size_and_operation(self):
        for only_active in (False, True):
            self.one([("mismatch.dtype", [1], "0", 21)], dtype="Half", only_active=only_active)
            self.one([("mismatch.size", [1], "0", 21)], ins=((32,),), only_active=only_active)
            self.one([("mismatch.op", [1], "0", 21)], op="_all_gather_base", outs=((256,),), only_active=only_active)

    def test_one_that_ended_all_the_same_is_wrong_and_not_stuck(self):
        d = job()
        for r in range(4):
            d.call(r, dtype="Half" if r == 2 else "Float")
        v, = self.check(every(d), ("mismatch.dtype", [2], "0", 21))
        self.assertEqual(v["severity"], "wrong")

    def sizes(self, *want, world=4, **by_rank):
        d = job(world)
        for r in range(world):
            d.call(r, state="started", **by_rank[f"r{r}"])
        return self.check(every(d), *want)

    def test_sizes_that_may_differ(self):
        self.sizes(**{f"r{r}": dict(op="all_to_all", ins=((8 * r + 8,),), outs=((99,),)) for r in range(4)})
        self.sizes(**{f"r{r}": dict(op="all_gather", ins=((5 + r,),), outs=((5,), (6,), (7,), (8,))) for r in range(4)})
        self.sizes(**{f"r{r}": dict(op="gather", ins=((8,),), outs=((8,),) * 4 if r == 0 else ()) for r in range(4)})
        self.sizes(**{f"r{r}": dict(op="scatter", outs=((8,),), ins=((8,),) * 4 if r == 0 else ()) for r in range(4)})
        self.sizes(**{f"r{r}": dict(op="_all_gather_base", ins=((8,),), outs=((4, 8),)) for r in range(4)})
        self.sizes(**{f"r{r}": dict(op="_reduce_scatter_base", ins=((32,),), outs=((8,),)) for r in range(4)})

    def test_an_all_gather_must_hold_all_inputs(self):
        self.sizes(("mismatch.size", [3], "0", 21), **{
            f"r{r}": dict(op="_all_gather_base", ins=((8,),), outs=((24 if r == 3 else 32,),)) for r in range(4)})

    def test_calls_that_share_a_number_are_one_call(self):
        d = job()
        for r in range(4):
            for k in range(3): # coalesced
                d.call(r, seq=21, ins=((8 + k,),), state="started")
        self.check(every(d))
        d = job()
        for r in range(4): # an all-gather of unequal parts, as broadcasts
            d.call(r, "all_gather", seq=21, ins=((5 + r,),), outs=((5,), (6,), (7,), (8,)), state="started")
            for k in range(4):
                d.call(r, "_broadcast_oop", seq=21, ins=((5 + k,),), state="started")
        self.check(every(d))

    def test_a_ring_that_forgot_its_begin(self):
        d = job(n=300)
        d.all(0, 1, 3, state="started")
        v = every(d)
        for r in v:
            v[r]["entries"] = v[r]["entries"][-20 - 3 * r:]
        self.check(v, (STUCK, [2], "0", 301))


class Tables(Folder):
    def test_status_entries_frames_and_report(self):
        d = job()
        d.all(0, 1, 3, state="started")
        self.judge(self.write(every(d)), "--keep-names")
        rows = call("sql", self.db, "SELECT rank, comm_id, description, size, last_enqueued, last_completed, n_pending "
                    "FROM flight_group ORDER BY rank").stdout.split()[1:]
        self.assertEqual(rows, [f"{r},0,default_pg,4,{20 if r == 2 else 21},20,{int(r != 2)}" for r in range(4)])
        rows = call("sql", self.db, "SELECT rank, count(*) AS n, sum(state = 'completed') AS done FROM flight_entry "
                    "GROUP BY rank").stdout.split()[1:]
        self.assertEqual(rows, ["0,9,8", "1,9,8", "2,8,8", "3,9,8"])
        row = call("sql", self.db, "SELECT seq, op, kind, dtype, in_shapes, frame, timeout_ns, duration_ns FROM flight_entry "
                   "WHERE rank = 0 AND state = 'started'", "--json").stdout
        self.assertEqual(json.loads(row), [{"seq": 21, "op": "nccl:all_reduce", "kind": "collective", "dtype": "Float",
                                            "in_shapes": "[[8]]", "frame": "/home/a/train.py:50 step",
                                            "timeout_ns": 600000000000, "duration_ns": None}])
        with open(os.path.join(ROOT, "docs", "report.schema.json")) as f:
            self.assertEqual(json_schema.problems(self.last, json.load(f)), [])
        self.assertEqual([(p["rank"], p["call"], p["frame"]) for p in self.last["flight"]["pending"]],
                         [(r, 21, "/home/a/train.py:50 step") for r in (0, 1, 3)])
        self.assertEqual([(p["rank"], p["call"]) for p in self.last["flight"]["last"]], [(2, 20)])
        shown = call("report", self.db).stdout
        self.assertIn("/home/a/train.py:50 step", shown)
        self.assertIn("in no call; its last", shown)
        for v in self.last["collectives"]["last_arrival"]:
            self.assertIsNone(v["rank"]) # clocks of hosts are not compared


class Call:
    def __reduce__(self):
        return os.system, ("true",)


class Bad(Folder):
    def test_code_is_refused_by_name_and_the_rest_is_read(self):
        paths = self.write(every(job(), but=(3,)))
        bad = os.path.join(self.dir, "_dump_3")
        with open(bad, "wb") as f:
            f.write(pickle.dumps({"entries": [Call()], "pg_config": {}, "version": "2.10"}, 2))
        self.judge(paths + [bad], status=5)
        self.assertEqual([(i["outcome"]) for i in self.last["coverage"]["inputs"]][-1], "has code in it: posix.system")

    def test_other_pickles_and_cut_ones(self):
        whole = pickle.dumps(job().dump(0), 4)
        for content, why in ((pickle.dumps({"a": 1}), "a pickle of something that this release does not read"),
                             (pickle.dumps([1, 2]), "a pickle of something"), (whole[:-1], "is cut off"),
                             (whole[:len(whole) // 2], "is cut off"), (b"\x80\x04", "is cut off")):
            path = os.path.join(self.dir, "x_rank0")
            with open(path, "wb") as f:
                f.write(content)
            r = call("import", path, "--db", os.path.join(self.dir, "x.db"))
            self.assertEqual(r.returncode, 3)
            self.assertIn(why, r.stdout)

    def test_any_values_in_any_place(self):
        """What no dump has is read as not said, or refused; nothing breaks."""
        rng = random.Random(5)
        odd = [None, -1, 2 ** 63 - 1, -2 ** 63, 2 ** 70, "", "x", "[1", [], {}, [[]], [[[1]]], True, 1.5, float("inf"), "[0, 99999999]",
               [[2 ** 40, 2 ** 40]], {"name": 1}, [None], "send 9->", "é\0"]
        d = job(2, n=6, groups={"1": ("PIPELINE", [0, 1])})
        d.call(0, "send 0->1", group="1", state="started").call(1, "recv 1<-0", group="1", state="scheduled")
        for i in range(60):
            v = copy.deepcopy(every(d))
            for _ in range(rng.randrange(1, 6)):
                at = v[rng.randrange(2)]
                place = rng.choice((at, rng.choice(at["entries"]) if isinstance(at.get("entries"), list) and at["entries"] else at,
                                    at.get("pg_config"), at.get("pg_status")))
                if isinstance(place, dict) and place:
                    place[rng.choice(list(place))] = copy.deepcopy(rng.choice(odd))
            paths = self.write(v, to=(lambda v: json.dumps(v).encode()) if i % 2 else (lambda v: pickle.dumps(v, 4)))
            db = os.path.join(self.dir, f"odd{i}.db")
            r = call("import", *paths, "--db", db)
            self.assertIn(r.returncode, (0, 3, 5), r.stderr)
            if r.returncode != 3:
                self.assertIn(call("report", db).returncode, (0, 1, 4, 5))


@unittest.skipUnless(os.path.isdir(os.path.join(DATA, "flight_recorder")), "the published dumps are not beside the checkout")
class Incidents(Folder):
    def incident(self, name):
        folder = os.path.join(DATA, "flight_recorder", name)
        got = self.judge([os.path.join(folder, f) for f in sorted(os.listdir(folder))])
        self.assertEqual([(v["class"], v["culprit"]["ranks"]) for v in got], [(STUCK, [9, 14])])
        return got[0]["culprit"]

    def test_a_device_that_failed(self):
        v = self.incident("gpu_error_2nd")
        self.assertEqual((v["group"], v["call"]), ("72", 44791))

    def test_an_interpreter_that_is_held(self):
        v = self.incident("lock_gil_1st")
        self.assertEqual((v["group"], v["call"]), ("72", 45265))

    def test_without_the_dump_of_one_of_them_the_other_one_is_named(self):
        for name in ("gpu_error_2nd", "lock_gil_1st"):
            folder = os.path.join(DATA, "flight_recorder", name)
            got = self.judge([os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f != "_dump_9"])
            self.assertEqual([v["culprit"]["ranks"] for v in got], [[14]])
            self.assertIn("Of rank 9 there is no dump", got[0]["sentence"])

    def test_whatever_dump_is_missing_nobody_else_is_named(self):
        folder = os.path.join(DATA, "flight_recorder", "gpu_error_2nd")
        for missing in ("_dump_0", "_dump_8", "_dump_12", "_dump_1"):
            got = self.judge([os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f != missing])
            for v in got:
                self.assertLessEqual(set(v["culprit"]["ranks"]), {9, 14})


@unittest.skipUnless(os.path.isdir(os.path.join(DATA, "h200")), "the recordings of two GPUs are not beside the checkout")
class Recorded(Folder):
    def mode(self, name, only_active=False):
        dumps = {}
        with tarfile.open(os.path.join(DATA, "h200", "flight_recorder.tgz")) as tar:
            for m in tar:
                if m.isfile() and f"fr_{name}_rank" in m.name:
                    tree = pickle.load(io.BytesIO(tar.extractfile(m).read()))
                    if only_active:
                        tree["entries"] = [e for e in tree["entries"] if e["state"] != "completed"]
                    dumps[int(m.name.rsplit("rank", 1)[1].split(".")[0])] = tree
        self.assertEqual(sorted(dumps), [0, 1])
        return dumps

    def test_a_call_that_rank_0_never_makes(self):
        for only_active in (False, True):
            self.check(self.mode("skip", only_active), (STUCK, [0], "0", 176))

    def test_two_operations_at_one_number(self):
        for only_active in (False, True):
            v, = self.check(self.mode("mismatch", only_active), ("mismatch.op", [], "0", 176))
            self.assertIn("all_gather", v["culprit"]["detail"])
            self.assertIn("all_reduce", v["culprit"]["detail"])

    def test_jobs_that_ended_well(self):
        for name in ("base", "ddp", "fsdp", "plugin_net", "plugin_p2p"):
            self.assertEqual(self.check(self.mode(name)), [])


if __name__ == "__main__":
    unittest.main()
