"""`syncline sim`: what a case says is what its catalogue holds, to the nanosecond.

tests/cases/rules has one small case a rule of the language with its truth, worked out by hand. With ../shared beside the
tree, every case there is held against the reference interpreter as well, with and without noise."""
import glob
import importlib.util
import json
import math
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import tale

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
RULES = os.path.join(ROOT, "tests", "cases", "rules")
SHARED = os.path.join(ROOT, "..", "shared", "cases")
MS = 1_000_000


def ns(ms):
    return None if ms is None or ms == math.inf else round(ms * MS)


def stamp(spec, rank, at):
    """What the clock of the rank shows."""
    offset_us, drift_ppm = spec.get("clock", {}).get(str(rank), [0, 0])
    return None if at is None else at + round(offset_us * 1000) + round(at * drift_ppm / 1e6)


def call(*words, **more):
    return subprocess.run([SYNCLINE, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **more)


class Folder(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._dir = tempfile.TemporaryDirectory()
        self.addCleanup(self._dir.cleanup)
        self.dir = self._dir.name
        self.n = 0

    def write(self, text):
        path = os.path.join(self.dir, f"spec{self.n}.json")
        with open(path, "w") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        return path

    def play(self, path, *options):
        self.n += 1
        db = os.path.join(self.dir, f"{self.n}.db")
        r = call("sim", path, "--db", db, *options)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(r.stderr, "")
        return db

    def tale(self, path, *options):
        t = tale.Tale(self.play(path, *options))
        self.addCleanup(t.close)
        return t

    def verdicts(self, db):
        r = call("report", db, "--json")
        self.assertIn(r.returncode, (0, 1, 4, 5), r.stderr)
        return [v["class"] for v in json.loads(r.stdout)["verdicts"] if v["severity"] != "notice"]


class Rules(Folder):
    """Each file of RULES: R01 to R15 of the language."""

    def of(self, rule):
        path, = glob.glob(os.path.join(RULES, rule + "_*.json"))
        with open(path) as f:
            spec = json.load(f)
        return spec, spec["expect"], self.tale(path)

    def check(self, rule):
        spec, want, t = self.of(rule)
        at = lambda rank, ms: stamp(spec, rank, ns(ms))
        span = lambda rank, pair: [at(rank, pair[0]), at(rank, pair[1])]
        for rank, ms in want.get("left", {}).items():
            self.assertEqual(t.ranks[int(rank)].left, at(rank, ms), f"rank {rank} leaves")
        for rank, v in want.get("device", {}).items():
            got = [t.ranks[int(rank)].device[k + 1] for k in range(len(t.ranks[int(rank)].device))]
            self.assertEqual(got, [span(rank, p) for p in v], f"device of rank {rank}")
        for rank, v in want.get("launch", {}).items():
            self.assertEqual([x[0] for x in t.ranks[int(rank)].launches.values()], [at(rank, p) for p in v])
        for key in ("work", "host_waits", "steps"):
            for rank, v in want.get(key, {}).items():
                self.assertEqual(getattr(t.ranks[int(rank)], key), [[p[0], *span(rank, p[1:])] for p in v], f"{key} of rank {rank}")
        for rank, v in want.get("waits", {}).items():
            self.assertEqual(t.ranks[int(rank)].waits, {int(k): x for k, x in v.items()})
        for rank, v in want.get("phases", {}).items():
            self.assertEqual([x[:2] for x in t.ranks[int(rank)].phases], v)
        for rank, v in want.get("calls", {}).items():
            got = t.ranks[int(rank)].calls
            self.assertEqual({k: [[name, seq] for _, name, seq in got[k]] for k in got}, {int(k): x for k, x in v.items()})
        exact = lambda rank, ns: ns if str(rank) not in spec.get("clock", {}) else None
        if "records" in want:
            got = [[rank, c, f, a] for rank, c, f, a in t.records() if c not in ("meta.group", "init.backend")]
            self.assertEqual(got, [[r, c, f, ns(a)] for r, c, f, a in want["records"]])
        if "gauges" in want:
            self.assertEqual([list(g) for g in t.gauges()], [[r, n, v, ns(a)] for r, n, v, a in want["gauges"]])
        if "logs" in want:
            self.assertCountEqual([[r, l, w, x, exact(r, a)] for r, l, w, x, a in t.logs()],
                                  [[r, l, w, x, exact(r, ns(a))] for r, l, w, x, a in want["logs"]])
        return spec, want, t

    def test_R01_programs_run_in_the_order_written(self):
        _, _, t = self.check("R01")
        groups = [f for _, c, f, _ in t.records() if c == "meta.group"]
        self.assertCountEqual(groups, [{"name": "pair", "ranks": [0, 2]}, {"name": "dp", "ranks": [0, 1, 2]}])

    def test_R02_a_launch_costs_the_host_a_hundredth(self):
        self.check("R02")

    def test_R03_markers_repeats_and_stalls(self):
        self.check("R03")

    def test_R04_a_collective_waits_for_its_stream_and_the_compute_work(self):
        _, _, t = self.check("R04")
        self.assertEqual([r.roots for r in t.ranks.values()], [{6: 1}] * 2)
        self.assertEqual({k: v for k, v in t.ranks[0].bytes.items()}, {("dp", k): 16 for k in range(1, 5)})

    def test_R05_a_collective_ends_when_the_last_has_come(self):
        _, _, t = self.check("R05")
        seen = {(g, s): (n, m) for g, s, n, m in t.db.execute("SELECT comm_id, seq, n_seen, mismatch FROM collective")}
        self.assertEqual(seen, {("dp", 1): (2, 0), ("a", 1): (2, 1), ("b", 1): (2, 1), ("c", 1): (2, 0), ("d", 1): (2, 0), ("e", 1): (1, 0)})

    def test_R06_a_kernel_waits_for_the_call_that_is_named(self):
        self.check("R06")

    def test_R07_messages_are_first_in_first_out_a_pair(self):
        self.check("R07")

    def test_R08_one_forward_one_backward(self):
        self.check("R08")

    def test_R09_records_and_gauges_are_instants(self):
        self.check("R09")

    def test_R10_clocks_are_applied_after_the_run_and_the_watchdog_speaks(self):
        _, _, t = self.check("R10")
        self.assertEqual([f for _, c, f, _ in t.records() if c == "init.backend"], [{"timeout_ms": 500}] * 3)
        hosts = t.db.execute("SELECT h.name, same_clock, count(*) FROM raw_process JOIN raw_host h USING (host_id) GROUP BY host_id").fetchall()
        self.assertCountEqual(hosts, [("a", 1, 1), ("b", 0, 1), ("b", 0, 1)])
        self.assertEqual(t.db.execute("SELECT count(*) FROM raw_exchange").fetchone(), (0,))

    def test_R11_what_is_expected_is_not_read(self):
        path, = glob.glob(os.path.join(RULES, "R05_*.json"))
        with open(path) as f:
            text = f.read()
        self.assertIn('"expect"', text)
        lies = text[:text.index('"expect"')] + '"expect":{"verdict":"slow.fixed_rank","culprit":"rank 1"}}'
        self.assertEqual(dump(self.play(path)), dump(self.play(self.write(lies))))

    def test_R12_noise_is_drawn_as_the_reference_draws(self):
        path, = glob.glob(os.path.join(RULES, "R12_*.json"))
        for seed in (0, 1, 7, 2**31, 2**32 + 5, 2**64 - 1):
            rng = random.Random(seed)
            draw = lambda ms: ns(ms * (1 + rng.uniform(-0.05, 0.05)))
            barrier = draw(6)
            fwd, bwd, receive, _ = draw(3), draw(5), draw(2), draw(0)
            kernel, cpu, send = draw(10), draw(4), draw(2)
            t = self.tale(path, "--noise", "0.05", "--seed", str(seed))
            launch = 10_000
            sent = launch + 2 * kernel            # the device is behind the host: its stream decides
            got = max(sent, 2 * launch + cpu + launch)
            got_1 = launch + fwd + bwd
            start = max(got, got_1)
            self.assertEqual(t.ranks[0].device[1], [launch, launch + kernel])
            self.assertEqual(t.ranks[0].device[2], [launch + kernel, sent])
            self.assertEqual(t.ranks[0].work, [["b", 2 * launch, 2 * launch + cpu]])
            self.assertEqual(t.ranks[0].device[3], [got, start + send])
            self.assertEqual(t.ranks[1].device[2], [launch + fwd, got_1])
            self.assertEqual(t.ranks[1].device[3], [got_1, start + receive])
            begun = max(start + send, start + receive)
            self.assertEqual(t.ranks[0].device[4], [start + send, begun + barrier])

    def test_R13_records_are_those_of_live_probes(self):
        _, _, t = self.check("R13")
        self.assertEqual(t.db.execute("SELECT rank, key, value FROM env_key").fetchall(), [(0, "nccl", "2.19.3")])

    def test_R14_hosts_are_compared_only_when_agents_probe(self):
        spec, want, t = self.check("R14")
        hosts = t.db.execute("SELECT name, same_clock FROM raw_host ORDER BY name").fetchall()
        self.assertEqual(hosts, [("a", 1), ("b", 0)])
        self.assertEqual(t.db.execute("SELECT rank, host, local_rank FROM rank_info ORDER BY rank").fetchall(),
                         [(0, "b", 0), (1, "a", 0), (2, "b", 1), (3, "a", 1)])
        n = 0
        for host, at, offset, error in t.db.execute("SELECT host, at_ns, offset_ns, offset_err_ns FROM clock_quality"):
            run = at - tale.REAL0
            truth = tale.REAL0 - tale.RAW0 - 5_000_000 - run * 20 // 1_000_000
            self.assertLessEqual(abs(offset - truth), error + 10)
            n += host == "b"
        self.assertGreaterEqual(n, 3)
        n, = t.db.execute("SELECT count(*) FROM raw_exchange").fetchone()
        self.assertGreaterEqual(n, 6)  # the best of each second, there and back

    def test_R15_a_healthy_job_is_left_alone(self):
        spec, _, t = self.check("R15")
        path, = glob.glob(os.path.join(RULES, "R15_*.json"))
        for options in ((), ("--noise", "0.05", "--seed", "3"), ("--noise", "0.05", "--seed", "4")):
            self.assertEqual(self.verdicts(self.play(path, *options)), [])


def dump(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    lines = list(db.iterdump())
    db.close()
    return lines


class Command(Folder):
    SMALL = {"id": "small", "world": 2, "prog": {"*": [["rep", 3, [["step"], ["k", 1, "a"], ["coll", "dp", "allreduce", 4, "f32", 1], ["sync"]]]]}}

    def test_the_same_case_noise_and_seed_give_the_same_catalogue(self):
        path, = glob.glob(os.path.join(RULES, "R14_*.json"))
        a, b, c = (dump(self.play(path, "--noise", "0.1", "--seed", s)) for s in ("5", "5", "6"))
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)

    def test_what_was_played_is_said_as_json(self):
        db = os.path.join(self.dir, "j.db")
        r = call("sim", self.write(self.SMALL), "--db", db, "--json")
        said = json.loads(r.stdout)
        self.assertEqual((said["id"], said["world"], said["ranks_left"], said["work_stuck"]), ("small", 2, 2, 0))
        n, = sqlite3.connect(db).execute("SELECT sum(n_events) FROM raw_chunk").fetchone()
        self.assertEqual(said["events"], n)
        report = json.loads(call("report", db, "--json").stdout)
        self.assertEqual(report["run"]["world_size"], 2)
        self.assertEqual(report["coverage"]["ranks_seen"], 2)
        self.assertEqual(report["coverage"]["events_lost"], 0)
        self.assertEqual(report["steps"]["n"], 3)
        self.assertEqual(report["collectives"]["n"], 3)

    def test_a_catalogue_that_is_there_is_not_touched(self):
        db = os.path.join(self.dir, "kept.db")
        with open(db, "w") as f:
            f.write("mine")
        r = call("sim", self.write(self.SMALL), "--db", db)
        self.assertEqual(r.returncode, 3)
        self.assertIn("is there already", r.stderr)
        with open(db) as f:
            self.assertEqual(f.read(), "mine")

    def test_a_folder_that_is_missing_is_named(self):
        r = call("sim", self.write(self.SMALL), "--db", os.path.join(self.dir, "no", "x.db"))
        self.assertEqual(r.returncode, 3)
        self.assertIn("no", r.stderr)

    def test_a_disk_that_takes_no_more_leaves_no_half_catalogue(self):
        def no_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        db = os.path.join(self.dir, "full.db")
        r = call("sim", self.write(self.SMALL), "--db", db, preexec_fn=no_room)
        self.assertEqual(r.returncode, 3)
        self.assertIn(db, r.stderr)
        self.assertEqual([f for f in os.listdir(self.dir) if f.startswith("full.db")], [])

    def test_a_file_that_is_missing_is_named(self):
        r = call("sim", os.path.join(self.dir, "none.json"), "--db", os.path.join(self.dir, "x.db"))
        self.assertEqual(r.returncode, 3)
        self.assertIn("none.json", r.stderr)

    def test_what_is_no_case_is_refused_with_its_place(self):
        small = lambda ops: {"world": 2, "prog": {"0-1": ops}}
        for spec, words in (
                ("", "line"), ("{", "line"), ("[]", "object"), ({"world": 2}, "prog is missing"), ("[" * 40, "deeper"),
                ({"world": 0, "prog": {}}, "world is a whole number from 1 to 4096"),
                ({"world": 2, "prog": {"0-2": []}}, "world of 2"), ({"world": 2, "prog": {"one": []}}, "not a list of ranks"),
                (small([["k", 1, "a"], ["rep", 2, [["coll", "tp", "allreduce", 1, "f32", 1]]]]),
                 'program "0-1", operation 2.1 (coll): there is no group "tp"'),
                (small([["k", -1, "a"]]), "milliseconds"), (small([["k", 1]]), "the name"), (small([["fly", 1]]), '"fly" is not one of'),
                (small([["coll", "dp", "allreduce", 1.5, "f32", 1]]), "the count is a whole number"),
                (small([["wait", "dp"]]), 'waits for call 1 of group "dp"'), (small([["1f1b", [0], 1, 1, 1, 1]]), "rank 1 runs a 1f1b"),
                (small([["p2p", [["s", 2, 1]], 1]]), "the peer"), (small([["1f1b", [0, 0], 1, 1, 1, 1]]), "two stages"),
                (small([["rep", 1000000, [["rep", 1000000, []]]]]), "too often"),
                (small([["rep", 1000000, [["k", 1, "a"]]]]), "more than 1048576 operations"),
                (small([["rep", 4, [["cpu", 2592000000, "a"]]]]), "longer than 30 days"),
                ({"world": 2, "hosts": {"a": "0"}, "prog": {}}, "1 of 2 ranks"),
                ({"world": 2, "hosts": {"a": "0", "b": "0-1"}, "prog": {}}, "rank of another host"),
                ({"world": 2, "clock": {"7": [1, 1]}, "prog": {}}, "not a rank of this world"),
                ({"world": 2, "clock": {"1": [1]}, "prog": {}}, "[offset_us, drift_ppm]")):
            db = os.path.join(self.dir, "refused.db")
            r = call("sim", self.write(spec), "--db", db)
            self.assertEqual(r.returncode, 3, r.stdout)
            self.assertIn(words, r.stderr)
            self.assertEqual(r.stderr.count("\n"), 1)
            self.assertFalse(os.path.exists(db))

    def test_a_file_without_end_is_refused_before_it_is_parsed(self):
        r = call("sim", "/dev/zero", "--db", os.path.join(self.dir, "z.db"))
        self.assertEqual(r.returncode, 3)
        self.assertIn("larger than 4194304 bytes", r.stderr)

    def test_numbers_that_are_none_are_wrong_use(self):
        path = self.write(self.SMALL)
        for words in (("--noise", "1"), ("--noise", "nan"), ("--noise", "x"), ("--seed", "-1"), ("--seed", "1e9")):
            self.assertEqual(call("sim", path, "--db", "x.db", *words).returncode, 2, words)
        self.assertEqual(call("sim", path).returncode, 2)

    def test_what_has_no_meaning_is_said_and_passed_over(self):
        spec = dict(self.SMALL, colour="red")
        r = call("sim", self.write(spec), "--db", os.path.join(self.dir, "c.db"))
        self.assertEqual(r.returncode, 0)
        self.assertIn('"colour"', r.stderr)

    def test_an_option_that_is_none_is_said_and_passed_over(self):
        spec = {"world": 1, "prog": {"0": [["coll", "dp", "allreduce", 1, "f32", 1, {"nowiat": 1}]]}}
        r = call("sim", self.write(spec), "--db", os.path.join(self.dir, "o.db"))
        self.assertEqual(r.returncode, 0)
        self.assertIn('"nowiat"', r.stderr)

    def test_many_ranks_on_one_host_have_several_agents(self):
        spec = {"world": 300, "prog": {"*": [["coll", "dp", "allreduce", 1, "f32", 1], ["sync"]]}}
        t = self.tale(self.write(spec))
        self.assertEqual(t.db.execute("SELECT count(*), min(same_clock) FROM raw_host").fetchone(), (1, 1))
        self.assertEqual(t.db.execute("SELECT count(*) FROM raw_agent").fetchone(), (2,))
        self.assertEqual(t.db.execute("SELECT n_seen, n_expected FROM collective").fetchall(), [(300, 300)])
        self.assertEqual({r.left for r in t.ranks.values()}, {1_010_000})


class Drawn:
    """Cases at random: every operation, deadlocks, calls that do not match."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.world = self.rng.randint(1, 6)
        self.groups = {f"g{i}": self.some_ranks() for i in range(self.rng.randint(0, 3))}
        prog = {"*": self.ops(0, set())}
        prog.update({str(rank): self.ops(0, set()) for rank in range(self.world) if self.rng.random() < 0.5})
        stages = self.rng.sample(range(self.world), self.rng.randint(1, self.world))
        ms = [self.ms() for _ in stages] if self.rng.random() < 0.5 else self.ms()
        prog[",".join(map(str, stages)) + " "] = [["1f1b", stages, self.rng.randint(0, 4), ms, self.ms(), 5]]
        prog[f"0-{self.world - 1}"] = self.ops(0, set())
        self.spec = {"id": f"drawn-{seed}", "world": self.world, "pg": self.groups, "prog": prog}

    def some_ranks(self):
        return ",".join(map(str, sorted(self.rng.sample(range(self.world), self.rng.randint(1, self.world)))))

    def ms(self):
        return self.rng.choice([0, 0.001, 1, 2.5, self.rng.random() * 10])

    def coll(self, made):
        chance, options = lambda p: self.rng.random() < p, {}
        options.update({o: 1 for o, p in (("nowait", 0.2), ("block", 0.2), ("never", 0.05)) if chance(p)})
        if chance(0.1):
            options["on"] = self.rng.choice(["c", "p", "z", "comm:dp"])
        if chance(0.3):
            options["mismatch"] = "complete"
        if chance(0.1):
            options["name"] = self.rng.choice("ab")
        group = self.rng.choice([*self.groups, "dp"])
        made.add(group)
        return ["coll", group, "broadcast" if chance(0.05) else "allreduce", self.rng.choice([1, 1, 1, 2]), "f32", self.ms(), options]

    def ops(self, depth, made):
        rng, kinds = self.rng, ["k", "k", "cpu", "coll", "coll", "coll", "p2p", "sync", "step", "gauge", "ev", "wait", "stall"]
        out = []
        for kind in rng.choices(kinds + ["rep", "only"] * (depth < 2), k=rng.randint(1, 6)):
            if kind in ("k", "cpu"):
                out.append([kind, self.ms(), kind])
            elif kind == "coll":
                out.append(self.coll(made))
            elif kind == "p2p":
                pairs = [[rng.choice("sr"), rng.randrange(self.world), 1] for _ in range(rng.randint(1, 3))]
                out.append(["p2p", pairs, self.ms(), {"block": int(rng.random() < 0.2)}])
            elif kind == "wait" and made:
                out.append(["wait", rng.choice(sorted(made))])
            elif kind == "rep":
                out.append(["rep", rng.randint(0, 3), self.ops(depth + 1, set(made))])
            elif kind == "only":
                out.append(["only", self.some_ranks(), self.ops(depth + 1, set(made))])
            elif kind == "stall" and rng.random() < 0.1:
                out.append(["stall", "s"])
            elif kind in ("sync", "step"):
                out.append([kind])
            elif kind == "gauge":
                out.append(["gauge", "batch", 1.5])
            elif kind == "ev":
                out.append(["ev", "loop", "branch", {"taken": 1}])
        return out


class Reference(Folder):
    """Every case of ../shared/cases against its interpreter."""

    @classmethod
    def setUpClass(cls):
        path = os.path.join(SHARED, "interp.py")
        cls.specs = sorted(glob.glob(os.path.join(SHARED, "specs", "*.json")))
        if not os.path.exists(path) or not cls.specs:
            raise unittest.SkipTest(f"{SHARED} is not there: nothing to compare with")
        spec = importlib.util.spec_from_file_location("interp", path)
        cls.interp = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.interp)

    @staticmethod
    def whole(spec):
        """Durations as the player takes them, in whole nanoseconds: sums have no rest then."""
        r = lambda x: round(x * MS) / MS

        def walk(prog):
            for op in prog:
                if op[0] in ("k", "cpu"):
                    op[1] = r(op[1])
                elif op[0] == "coll":
                    op[5] = r(op[5])
                elif op[0] == "p2p":
                    op[2] = r(op[2])
                elif op[0] in ("rep", "only"):
                    walk(op[2])
                elif op[0] == "1f1b":
                    for k in (3, 4):
                        op[k] = [r(x) for x in op[k]] if isinstance(op[k], list) else r(op[k])
        for prog in spec["prog"].values():
            walk(prog)
        return spec

    def compare(self, path, noise, seed):
        with open(path) as f:
            spec = json.load(f)
        want = self.whole(self.interp.noisy(spec, noise, seed) if noise else spec)
        nodes, calls, _ = self.interp.run(want)
        db = self.play(path, *(("--noise", str(noise), "--seed", str(seed)) if noise else ()))
        t = tale.Tale(db)
        n = 0
        for rank in range(spec["world"]):
            mine, got = [x for x in nodes if x.rank == rank], t.ranks[rank]
            at = lambda ms: stamp(spec, rank, ns(ms))
            device = [x for x in mine if x.kind in ("k", "coll", "p2p")]
            launched = [x for x in mine if x.kind == "host" and x.name == "launch" and x.end < math.inf]
            self.assertEqual([x[0] for x in got.launches.values()], [at(x.end) for x in launched])
            for number, x in enumerate(device, 1):
                span = [at(x.start), at(x.end)]
                self.assertEqual(got.device.get(number, [None, None]), span, f"{path}, noise {noise}, seed {seed}, rank {rank}: {x.__dict__}")
                if x.kind == "coll" and number in got.launches:
                    (_, group, seq), = got.calls[number]
                    self.assertEqual((group, seq), (x.pg, x.seq))
                    self.assertIs(calls[group, seq][rank], x)
                if x.kind == "p2p" and number in got.launches:
                    self.assertEqual(len(got.calls[number]), len(x.ops))
                n += 1
            scopes = [x for x in mine if x.kind == "host" and x.name not in ("launch", "sync", "block") and x.start < math.inf]
            self.assertEqual(got.work, [[x.name, at(x.start), at(x.end)] for x in scopes])
            waits = [x for x in mine if x.kind == "host" and x.name in ("sync", "block")]
            self.assertEqual([w[2] for w in got.host_waits if w[2] is not None], [at(x.start) for x in waits if x.start < math.inf])
            exit, = (x for x in mine if x.kind == "exit")
            self.assertEqual(got.left, at(max([exit.end] + [x.end for x in device])))
        t.close()
        # What hangs may be said to hang, with the cause unknown; a case at random that does has no truth of its own.
        hangs = any(x.start < math.inf and x.end == math.inf for x in nodes)
        allowed = {(spec.get("expect") or {}).get("verdict")} | ({"stuck.localised_cause_unknown"} if hangs else set())
        for verdict in self.verdicts(db):
            if "expect" in spec or not hangs:
                self.assertIn(verdict, allowed, path)
        os.unlink(db)
        return n

    def test_every_start_and_end_is_the_reference_s(self):
        total = 0
        for path in self.specs:
            for noise, seed in ((0, 0), (0.05, 1), (0.05, 7), (0.05, 2**40 + 9), (0.3, 12)):
                total += self.compare(path, noise, seed)
        print(f"{len(self.specs)} cases, {total} starts and ends compared", file=sys.stderr)

    def test_cases_at_random_are_the_reference_s(self):
        total = n = 0
        for seed in range(60):
            spec = Drawn(seed).spec
            try:
                self.interp.run(json.loads(json.dumps(spec)))
            except KeyError:
                continue  # a wait for a call that was not made: refused here too
            total += self.compare(self.write(spec), *((0.05, seed) if seed % 2 else (0, 0)))
            n += 1
        self.assertGreater(n, 20)
        print(f"{n} cases at random, {total} starts and ends compared", file=sys.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
