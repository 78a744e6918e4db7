"""`syncline export`: traces that say what the tables say, to the nanosecond, and that a viewer's importer accepts.

Every trace is read back off the wire by tracefile.py, which knows none of the program's definitions, and by protoc,
which knows them; what is in it is held against the views."""
import collections
import gzip
import json
import os
import pty
import random
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import catalogue
import tracefile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "data")
CASES = os.path.join(ROOT, "tests", "cases", "verdicts")
MS = 1_000_000

APART = {"id": "APART", "world": 4, "hosts": {"a": "0-1", "b": "2-3"}, "clock": {"2": [7000, 3], "3": [7000, 3]}, "probes": 1,
         "prog": {"*": [["cpu", 300, "start"]],
                  "0": [["rep", 9, [["step"], ["k", 20, "work"], ["coll", "dp", "allreduce", 4096, "f32", 4], ["wait", "dp"],
                                    ["k", 2, "save"], ["sync"]]]],
                  "1,3": [["rep", 9, [["step"], ["k", 20, "work"], ["coll", "dp", "allreduce", 4096, "f32", 4], ["sync"]]]],
                  "2": [["rep", 3, [["step"], ["k", 20, "work"], ["coll", "dp", "allreduce", 4096, "f32", 4], ["sync"]]],
                        ["rep", 6, [["step"], ["k", 26, "work"], ["coll", "dp", "allreduce", 4096, "f32", 4], ["sync"]]]]}}


def call(*words, **more):
    return subprocess.run([SYNCLINE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **more)


def read(path):
    with open(path, "rb") as f:
        return f.read()


class Case(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.db = os.path.join(self.dir, "run.db")

    def open(self):
        db = sqlite3.connect(self.db)
        db.row_factory = sqlite3.Row
        self.addCleanup(db.close)
        return db

    def play(self, case):
        path = case
        if not isinstance(case, str):
            path = os.path.join(self.dir, "case.json")
            with open(path, "w") as f:
                json.dump(case, f)
        r = call("sim", path, "--db", self.db)
        self.assertEqual(r.returncode, 0, r.stderr)
        return self.open()

    def made(self, *options):
        """By catalogue.py: options of create()."""
        catalogue.create(self.db, **dict(options)).close()
        return self.open()

    def write(self, *options, format="perfetto"):
        r = call("export", self.db, "--format", format, "-o", "-", *options)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.said = r.stderr.decode()
        self.bytes = r.stdout
        return tracefile.read_perfetto(r.stdout) if format == "perfetto" else tracefile.read_chrome(r.stdout)


def rank_of(t, s):
    name = t.place(s)[0]
    return int(name.split()[1]) if name.startswith("rank ") else None


class Truth(Case):
    """What is in a trace is what the views say."""

    def check_calls(self, t, db, steps="1"):
        got = {(rank_of(t, s), t.place(s)[1][len("group "):], s.args["seq"]): s for s in t.slices if s.cat == "collective"}
        rows = db.execute(f"SELECT r.*, c.last_rank, c.decided, c.op, c.bytes AS n_bytes, c.gap FROM collective_rank r "
                          f"JOIN collective c USING (comm_id, seq) WHERE c.step IS NULL OR {steps.replace('step', 'c.step')}").fetchall()
        self.assertEqual(sorted(got), sorted((r["rank"], r["comm_id"], r["seq"]) for r in rows))
        self.assertEqual(len(got), sum(s.cat == "collective" for s in t.slices))
        for r in rows:
            s = got[r["rank"], r["comm_id"], r["seq"]]
            self.assertEqual((s.begin, s.name, s.args["bytes"]), (r["arrival_ns"], r["op"], r["n_bytes"]))
            self.assertEqual(s.args["clock_error_ns"], r["arrival_err_ns"] if r["arrival_err_ns"] < 2**63 - 1 else "not known")
            self.assertEqual(s.args["last_rank"], r["last_rank"] if r["decided"] else "too close to call")
            if r["dur_ns"] is None:
                self.assertTrue(s.args["unfinished"])
                continue
            self.assertEqual(s.end, r["arrival_ns"] + r["dur_ns"])
            if r["wait_ns"] is not None:
                self.assertEqual(s.args["wait_ns"], r["wait_ns"])
            inside = [(c.cat, c.begin - s.begin, c.end - s.begin) for c in s.children if c.cat != "arrival"]
            wait = 0 if r["gap"] or not r["wait_ns"] else min(r["wait_ns"], r["dur_ns"])
            self.assertEqual(inside, [("wait", 0, wait), ("transfer", wait, r["dur_ns"])] if wait > 0 else [])
        return got

    def check_arrows(self, t, db, calls):
        told = collections.Counter()
        for left, arrived, at_from, at_to in t.arrows:
            self.assertLessEqual(at_from, at_to)
            target = arrived if arrived.cat == "collective" else arrived.parent
            source = left.parent if left.cat == "arrival" else left  # JSON's leave the slice around the instant
            self.assertIn("last to arrive", [c.name for c in source.children])
            comm = t.place(source)[1][len("group "):]
            self.assertEqual((target.args["seq"], t.place(target)[1]), (source.args["seq"], t.place(source)[1]))
            told[rank_of(t, left), comm, source.args["seq"]] += 1
            self.assertEqual(at_from, source.begin)
        wanted = {(r["last_rank"], r["comm_id"], r["seq"]): r["n_seen"] - 1 for r in db.execute(
            "SELECT * FROM collective WHERE decided AND last_rank IS NOT NULL AND n_seen > 1")
            if (r["last_rank"], r["comm_id"], r["seq"]) in calls}
        self.assertEqual(dict(told), wanted)
        return sum(wanted.values())

    def check_steps(self, t, db):
        got = {(rank_of(t, s), s.args["step"]): s for s in t.slices if s.cat == "step"}
        rows = db.execute("SELECT *, lead(begin_ns) OVER (PARTITION BY rank ORDER BY step) AS next_ns FROM rank_step").fetchall()
        self.assertEqual(sorted(got), sorted((r["rank"], r["step"]) for r in rows))
        for r in rows:
            s, end = got[r["rank"], r["step"]], r["begin_ns"] + r["dur_ns"]
            if r["next_ns"] is not None and r["begin_ns"] <= r["next_ns"] and 0 <= end - r["next_ns"] <= r["begin_err_ns"]:
                end = r["next_ns"]  # not further than the clocks can tell
            self.assertEqual((s.begin, s.end, s.args["dur_ns"], s.name), (r["begin_ns"], end, r["dur_ns"], f"step {r['step']}"))
            self.assertEqual(s.args.get("excess_ratio"), r["excess_ratio"])
            self.assertEqual(s.args.get("wait_ns"), r["wait_ns"])
            self.assertEqual(s.args["clock_error_ns"], r["begin_err_ns"] if r["begin_err_ns"] < 2**63 - 1 else "not known")

    def check_findings(self, t, db):
        rows = db.execute("SELECT * FROM finding").fetchall()
        got = {s.args["finding"]: s for s in t.instants if s.cat == "finding" and t.place(s)[0] == "The run"}
        self.assertEqual(sorted(got), sorted(r["id"] for r in rows))
        on_ranks = collections.Counter((s.args["finding"], rank_of(t, s)) for s in t.instants if s.cat == "finding" and rank_of(t, s) is not None)
        self.assertEqual(on_ranks, collections.Counter((r["id"], k) for r in rows for k in json.loads(r["culprit"]).get("ranks") or ()))
        for r in rows:
            s = got[r["id"]]
            self.assertEqual((s.name, s.args["sentence"][:2000], s.args["confidence"], s.args["severity"], s.args.get("margin_ns"), s.args["error_kind"]),
                             (r["class"], r["sentence"][:2000], r["confidence"], r["severity"], r["margin_ns"], r["error_kind"]))
            self.assertEqual(s.args.get("error_ns"), "not known" if r["error_ns"] == 2**63 - 1 else r["error_ns"])
            onset = r["onset_ns"] if r["onset_ns"] is not None else r["detected_ns"]
            self.assertEqual(s.args.get("onset_ns", s.begin), onset)
        return len(rows)

    def test_traces_of_played_cases(self):
        n_arrows = n_findings = n_calls = 0
        for name in ("slow_fixed_rank", "slow_fixed_rank.healthy", "bubble_amplified", "clock_offset", "clock_step", "absent_stopped",
                     "absent_crashed", "uneven_input", "checkpoint", "group_order", APART):
            path = name if isinstance(name, dict) else os.path.join(CASES, name + ".json")
            if isinstance(path, str) and not os.path.exists(path):
                continue
            with self.subTest(case=name if isinstance(name, str) else "apart"):
                if os.path.exists(self.db):
                    os.unlink(self.db)
                db = self.play(path)
                for format in ("perfetto", "chrome"):
                    t = self.write("--all", format=format)
                    calls = self.check_calls(t, db)
                    n_calls += len(calls)
                    n_arrows += self.check_arrows(t, db, calls)
                    self.check_steps(t, db)
                    n_findings += self.check_findings(t, db)
        self.assertGreater(n_calls, 1000)
        self.assertGreater(n_arrows, 100)
        self.assertGreater(n_findings, 5)

    def test_both_formats_say_the_same(self):
        self.play(APART)
        a, b = self.write(), self.write(format="chrome")
        def key(t, s):
            return t.place(s), s.begin, s.end, s.name or "", s.cat or ""
        for x, y in ((a.slices, b.slices), (a.instants, b.instants)):
            x, y = sorted(((key(a, s), s.args) for s in x), key=lambda v: v[0]), sorted(((key(b, s), s.args) for s in y), key=lambda v: v[0])
            self.assertEqual([k for k, _ in x], [k for k, _ in y])
            self.assertEqual([v for _, v in x], [v for _, v in y])
        # In JSON an arrow leaves the slice around the instant.
        self.assertEqual(sorted((key(a, f.parent), key(a, to)) for f, to, _, _ in a.arrows), sorted((key(b, f), key(b, to)) for f, to, _, _ in b.arrows))

    def test_a_rank_with_its_own_clock_is_in_order(self):
        """Events of a host 7 ms off and drifting lie where its calls lie: a kernel ends when the call behind it begins."""
        db = self.play(APART)
        t = self.write()
        n = 0
        for s in t.slices:
            if s.cat != "kernel" or s.name != "work":
                continue
            step = [c for c in t.slices if c.cat == "collective" and rank_of(t, c) == rank_of(t, s) and c.args["step"] == s.args["step_of_process"]]
            self.assertEqual(len(step), 1)
            self.assertLessEqual(abs(step[0].begin - s.end), 100)
            n += 1
        self.assertEqual(n, 36)
        error = db.execute("SELECT max(begin_err_ns) FROM rank_step WHERE rank > 1").fetchone()[0]
        self.assertGreater(error, 0)

    def test_protoc_reads_it_with_our_definitions(self):
        if not shutil.which("protoc"):
            self.skipTest("protoc is not there")
        self.play(APART)
        self.write()
        r = subprocess.run(["protoc", "--decode=perfetto.protos.Trace", f"--proto_path={ROOT}/cli", "perfetto.proto"], input=self.bytes,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(r.returncode, 0, r.stderr)
        text = r.stdout.decode()
        unknown = [line for line in text.splitlines() if line.strip().split(":")[0].split(" ")[0].isdigit()]
        self.assertEqual(unknown, [])
        self.assertEqual(text.count("TYPE_SLICE_BEGIN"), text.count("TYPE_SLICE_END"))

    def test_arrows_have_the_shape_of_the_published_example(self):
        path = os.path.join(SHARED, "perfetto", "flow_events_json_v1.json")
        if not os.path.exists(path):
            self.skipTest("../shared is not there")
        with open(path) as f:
            example = json.load(f)["traceEvents"]
        self.play(APART)
        self.write(format="chrome")
        ours = [e for e in json.loads(self.bytes)["traceEvents"] if e["ph"] in "sf"]
        theirs = [e for e in example if e["ph"] in "sf"]
        self.assertTrue(ours)
        for e in ours:
            like = next(x for x in theirs if x["ph"] == e["ph"])
            for k in e:
                if k != "bp":  # ours binds to the slice around
                    self.assertIs(str if isinstance(like[k], str) else int, str if isinstance(e[k], str) else int, k)
            self.assertTrue({"cat", "name", "id", "pid", "tid", "ts"} <= set(e))
        self.assertEqual(collections.Counter(e["id"] for e in ours if e["ph"] == "s"), collections.Counter(e["id"] for e in ours if e["ph"] == "f"))

    def test_kernels_of_an_import_are_those_of_its_files(self):
        files = [os.path.join(SHARED, "h200", f"kineto_ddp_rank{r}.json.gz") for r in (0, 1)]
        if not all(map(os.path.exists, files)):
            self.skipTest("../shared is not there")
        r = call("import", *files, "--db", self.db)
        self.assertEqual(r.returncode, 0, r.stderr)
        t = self.write("--all")
        for rank, path in enumerate(files):
            with gzip.open(path, "rt") as f:
                events = json.load(f, parse_float=str)["traceEvents"]
            def ns(v):
                us, _, fraction = str(v).partition(".")
                return int(us) * 1000 + int((fraction + "000")[:3])
            wanted = collections.Counter((e["name"][:120], ns(e["dur"])) for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
                                         and "nccl" not in e["name"].lower())
            got = collections.Counter((s.name[:120], s.end - s.begin) for s in t.slices if s.cat == "kernel" and rank_of(t, s) == rank)
            # The clock of a rank that is not the measure runs a little slower or faster.
            slack = 0 if rank == 0 else 2000
            self.assertTrue(collections.Counter(n for n, _ in got.elements()) == collections.Counter(n for n, _ in wanted.elements()))
            for (n1, a), (n2, b) in zip(sorted(got.elements()), sorted(wanted.elements())):
                self.assertEqual(n1, n2)
                self.assertLessEqual(abs(a - b), slack)
            self.assertGreater(sum(got.values()), 500)


class Windows(Case):
    def test_steps(self):
        db = self.play(os.path.join(CASES, "slow_fixed_rank.json"))
        t = self.write("--from", "5", "--to", "7")
        self.assertEqual({s.args["step"] for s in t.slices if s.cat == "step"}, {5, 6, 7})
        n = db.execute("SELECT count(*) FROM collective c JOIN collective_rank r USING (comm_id, seq) WHERE c.step BETWEEN 5 AND 7").fetchone()[0]
        self.assertEqual(sum(s.cat == "collective" for s in t.slices), n)
        self.assertEqual({s.args["step"] for s in t.slices if s.cat == "collective"}, {5, 6, 7})
        lo, hi = db.execute("SELECT min(begin_ns), max(begin_ns + dur_ns) FROM step WHERE step BETWEEN 5 AND 7").fetchone()
        for s in t.slices:
            if s.cat == "kernel":
                self.assertTrue(lo <= s.begin <= hi)
        self.assertTrue(any(s.cat == "kernel" for s in t.slices))
        self.assertIn("steps 5 to 7 of 0 to 32", self.said)
        t = self.write("--last", "2")
        self.assertEqual({s.args["step"] for s in t.slices if s.cat == "step"}, {31, 32})
        t = self.write("--from", "30")
        self.assertEqual({s.args["step"] for s in t.slices if s.cat == "step"}, {30, 31, 32})

    def test_ranks(self):
        self.play(os.path.join(CASES, "slow_fixed_rank.json"))
        t = self.write("--ranks", "1,3-4")
        self.assertEqual({rank_of(t, s) for s in t.slices}, {1, 3, 4})
        self.assertEqual(sorted(n for n in t.processes.values() if n.startswith("rank ")),
                         ["rank 1 (host north)", "rank 3 (host south)", "rank 4 (host south)"])

    def test_times(self):
        db = self.made()
        started = db.execute("SELECT started_ns FROM run").fetchone()[0]
        self.assertEqual(started, catalogue.START_NS)
        t = self.write("--since", "0.26", "--until", "0.31")  # steps of 50 ms
        self.assertEqual({s.args["step"] for s in t.slices if s.cat == "step"}, {5, 6})
        t = self.write("--since", "2023-11-14T22:13:20.86")
        self.assertEqual({s.args["step"] for s in t.slices if s.cat == "step"}, {17, 18, 19})
        r = call("export", self.db, "-o", "-", "--since", "100")
        self.assertEqual(r.returncode, 3)
        self.assertIn(b"none at that time", r.stderr)

    def test_a_finding(self):
        db = self.made()
        catalogue.put_verdict(db)
        id, = db.execute("SELECT id FROM finding").fetchone()
        t = self.write("--finding", str(id))
        self.assertEqual({rank_of(t, s) for s in t.slices}, {2})
        self.assertEqual({s.args["step"] for s in t.slices if s.cat == "step"}, set(range(6, 20)))
        self.assertEqual([s.name for s in t.instants if s.cat == "finding"], ["slow.fixed_rank"] * 2)
        r = call("export", self.db, "-o", "-", "--finding", "77")
        self.assertEqual(r.returncode, 3)
        self.assertIn(b"no finding 77", r.stderr)

    def test_a_long_run_gives_its_last_steps_and_says_so(self):
        db = self.made()
        for k in range(4):  # as if each rank had told of a million things
            db.execute("UPDATE raw_chunk SET n_events = 1000000, host_t_max_ns = 1000000000 WHERE process_id = ?", (k + 1,))
        db.commit()
        self.write()
        self.assertRegex(self.said, r"steps \d+ to 19 of 0 to 19: about \d+ events, \d+ MB")
        self.write("--all")
        self.assertIn("all 20 steps", self.said)

    def test_what_a_viewer_does_not_take_is_refused(self):
        db = self.made()
        db.execute("UPDATE raw_chunk SET n_events = 1000000000, host_t_max_ns = 1000000000")
        db.commit()
        out = os.path.join(self.dir, "x.pftrace")
        r = call("export", self.db, "--all", "-o", out)
        self.assertEqual(r.returncode, 2)
        self.assertIn(b"two to four times", r.stderr)
        self.assertIn(b"--force", r.stderr)
        self.assertEqual(os.listdir(self.dir).count("x.pftrace"), 0)
        r = call("export", self.db, "--all", "-o", out, "--force")
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_parts_are_left_out(self):
        self.play(APART)
        t = self.write("--without", "kernels,arrows")
        self.assertEqual((t.arrows, [s for s in t.slices if s.cat == "kernel"]), ([], []))
        self.assertTrue([s for s in t.slices if s.cat == "collective"])
        t = self.write("--without", "host")
        self.assertEqual([s for s in t.slices if "thread" in t.place(s)[1]], [])

    def test_what_it_guesses_is_near(self):
        for case in ("slow_fixed_rank", "bubble_amplified", "clock_offset"):
            if os.path.exists(self.db):
                os.unlink(self.db)
            self.play(os.path.join(CASES, case + ".json"))
            for format in ("perfetto", "chrome"):
                self.write(format=format)
                n, unit = self.said.split(", ")[-1].split()
                guess = float(n) * {"kB": 1e3, "MB": 1e6}[unit]
                self.assertTrue(0.4 < guess / len(self.bytes) < 4, (case, format, guess, len(self.bytes)))


class Files(Case):
    def test_the_file_is_there_whole_or_not_at_all(self):
        self.made()
        out = os.path.join(self.dir, "x.pftrace")
        r = call("export", self.db, "-o", out)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn(b" events in ", r.stdout)
        first = read(out)
        self.assertEqual(call("export", self.db, "-o", "-").stdout, first)  # the same every time
        r = call("export", self.db, "-o", out)
        self.assertEqual(r.returncode, 2)
        self.assertIn(b"--force", r.stderr)
        self.assertEqual(call("export", self.db, "-o", out, "--force").returncode, 0)
        self.assertEqual(call("export", self.db, "-o", self.db, "--force").returncode, 2)
        self.assertEqual(call("export", self.db, "-o", os.path.join(self.dir, "no", "x.pftrace")).returncode, 3)
        self.assertEqual(call("export", self.db, "-o", "/dev/full").returncode, 2)
        self.assertEqual(call("export", self.db, "-o", "-", "--all").returncode, 0)
        self.assertEqual(sorted(f for f in os.listdir(self.dir) if "part" in f), [])

    def test_a_full_disk_is_said(self):
        self.made()
        with open("/dev/full", "wb") as full:
            r = subprocess.run([SYNCLINE, "export", self.db, "-o", "-"], stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(r.returncode, 3)
        self.assertIn(b"cannot write", r.stderr)

    def test_the_name_follows_the_database(self):
        self.made()
        r = call("export", self.db, cwd=self.dir)
        self.assertEqual(r.returncode, 0, r.stderr)
        tracefile.read_perfetto(read(os.path.join(self.dir, "run.pftrace")))
        self.assertEqual(call("export", self.db, "-o", "a.json", cwd=self.dir).returncode, 0)
        tracefile.read_chrome(read(os.path.join(self.dir, "a.json")))

    def test_not_onto_a_terminal(self):
        self.made()
        master, slave = pty.openpty()
        r = subprocess.run([SYNCLINE, "export", self.db, "-o", "-"], stdout=slave, stderr=subprocess.PIPE, timeout=60)
        os.close(slave)
        os.close(master)
        self.assertEqual(r.returncode, 2)
        self.assertIn(b"not for a terminal", r.stderr)

    def test_an_empty_run(self):
        db = catalogue.create(self.db, seen=0, steps=0)
        db.close()
        r = call("export", self.db, "-o", "-")
        self.assertEqual((r.returncode, r.stdout), (5, b""))
        self.assertIn(b"nothing to export", r.stderr)
        self.assertEqual(call("export", os.path.join(self.dir, "none.db"), "-o", "-").returncode, 3)

    def test_a_run_that_is_still_written(self):
        db = catalogue.create(self.db, wal=True)
        db.execute("BEGIN IMMEDIATE")
        db.execute("DELETE FROM raw_rank_step")
        t = self.write()
        self.assertEqual(sum(s.cat == "step" for s in t.slices), 80)
        db.rollback()
        db.close()

    def test_runs_of_earlier_releases(self):
        for version, gone in ((3, []), (2, ["raw_path", "raw_blame", "raw_what_if", "raw_input", "raw_stage_step", "raw_comm_class"])):
            with self.subTest(version=version):
                if os.path.exists(self.db):
                    os.unlink(self.db)
                db = catalogue.create(self.db)
                views = [v for v, in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
                if version < 3:  # the views of that time told of no more than there was
                    for v in views:
                        db.execute(f"DROP VIEW {v}")
                    for name in gone:
                        db.execute(f"DROP TABLE {name}")
                    db.execute("DROP INDEX IF EXISTS raw_path_kept")
                    db.execute("ALTER TABLE raw_collective DROP COLUMN gap")
                    for column in ("compute_ns", "idle_ns", "host_ns"):
                        db.execute(f"ALTER TABLE raw_rank_step DROP COLUMN {column}")
                    db.execute("ALTER TABLE raw_bucket DROP COLUMN group_id")
                    for view in views_of_schema_2():
                        db.execute(view)
                db.execute(f"PRAGMA user_version = {version}")
                db.commit()
                db.close()
                t = self.write()
                self.assertEqual(collections.Counter(s.cat for s in t.slices)["collective"], 80)
                self.assertEqual(collections.Counter(s.cat for s in t.slices)["step"], 80)

    def test_names_may_be_anything(self):
        db = self.made()
        db.execute("UPDATE raw_group SET name = ?", ('a"b\\c\x1b[31m\n</script>é',))
        db.execute("UPDATE raw_host SET name = CAST(x'ff41c328' AS TEXT) WHERE host_id = 1")
        db.execute("INSERT INTO raw_gauge VALUES (?, 1, 0, 'mem\x07\"', 1.5), (?, 2, NULL, 'load', 0.25)", (catalogue.START_NS + 5, catalogue.START_NS + 6))
        catalogue.put_verdict(db, sentence='Rank "2"\x1b]0;x\x07.')
        for format in ("perfetto", "chrome"):
            t = self.write(format=format)
            groups = {t.place(s)[1] for s in t.slices if s.cat == "collective"}
            self.assertEqual(groups, {'group a"b\\c?[31m?</script>é'})
            self.assertEqual(sorted((t.tracks[track][0], v) for track, _, v in t.readings), [("load of hostb", 0.25), ('mem?"', 1.5)])
            if format == "chrome":
                self.assertNotIn(b"\x1b", self.bytes)
            said, = {s.args["sentence"] for s in t.instants if s.cat == "finding"}
            self.assertEqual(said, 'Rank "2"?]0;x?.')

    def test_what_was_lost_is_said(self):
        db = catalogue.create(self.db, lost=17)
        db.execute("UPDATE raw_agent SET n_given_up = 3")
        db.execute("UPDATE raw_collective SET arrivals = '[[0,0,1000,5],[1,2]' WHERE seq = 3")
        db.execute("UPDATE raw_collective SET arrivals = '[[0,0,1000,5],[\"x\"],[1,5,null,7]]' WHERE seq = 4")
        db.commit()
        db.close()
        t = self.write()
        drops = [s for s in t.instants if s.cat == "drops"]
        self.assertEqual([(rank_of(t, s), s.args["ring"]) for s in drops], [(0, 17)])
        about, = [s for s in t.instants if s.cat == "about"]
        self.assertEqual((about.args["lost_by_ranks"], about.args["lost_by_agents"]), (17, 3))
        self.assertEqual((about.args["unreadable"], about.args["slices_cut"]), (2, 1))
        other = self.write(format="chrome").other
        self.assertEqual(other["lost_by_ranks"], 17)

    def test_a_damaged_database_still_gives_a_sound_trace(self):
        self.play(APART)
        whole = sum(s.cat in ("kernel", "collective") for s in self.write().slices)
        whole_db = read(self.db)
        for seed in range(8):
            with open(self.db, "wb") as f:
                f.write(whole_db)
            db, luck = self.open(), random.Random(seed)
            for chunk, data in db.execute("SELECT chunk_id, data FROM raw_chunk").fetchall():
                data = bytearray(data)
                for _ in range(4):
                    data[luck.randrange(32, len(data))] ^= 1 << luck.randrange(8)
                db.execute("UPDATE raw_chunk SET data = ? WHERE chunk_id = ?", (bytes(data), chunk))
            for seq, text in db.execute("SELECT seq, arrivals FROM raw_collective").fetchall():
                k = luck.randrange(len(text))
                db.execute("UPDATE raw_collective SET arrivals = ? WHERE seq = ?", (text[:k] + luck.choice("019-[],") + text[k + 1:], seq))
            db.commit()
            db.close()
            for format in ("perfetto", "chrome"):
                t = self.write("--all", "--force", format=format)  # read back with every check
                about, = [s for s in t.instants if s.cat == "about"]
                drawn = sum(s.cat in ("kernel", "collective") for s in t.slices)
                lost = sum(about.args[k] for k in ("unreadable", "ends_without_begin", "slices_cut", "slices_without_lane"))
                self.assertTrue(drawn == whole or lost > 0, (seed, drawn, whole, about.args))

    def test_calls_of_one_group_may_overlap(self):
        db = self.made()
        # Issued one behind the other, ended in the other order: begins 1, 2 and ends 2, 3 ms later do not nest.
        for step, (enter, exit) in enumerate(((0, 30), (10, 40), (20, 25), (35, 60))):
            db.execute("UPDATE raw_collective SET first_arrival_ns = ?, last_arrival_ns = ?, arrivals = ? WHERE seq = ?",
                       (catalogue.START_NS + enter * MS, catalogue.START_NS + enter * MS,
                        json.dumps([[r, 0, (exit - enter) * MS, 5] for r in range(4)]), step))
        db.commit()
        t = self.write("--to", "3")
        lanes = collections.defaultdict(list)
        for s in t.slices:
            if s.cat == "collective" and rank_of(t, s) == 1:
                lanes[s.track].append(s.args["seq"])
        self.assertEqual(sorted(lanes.values()), [[0, 3], [1], [2]])

    def test_wrong_use(self):
        self.made()
        for words in (["--format", "pdf"], ["--from", "9", "--to", "3"], ["--from", "1", "--last", "2"], ["--ranks", "3-1"], ["--ranks", "x"],
                      ["--without", "steps"], ["--since", "yesterday"], ["--last", "0"], ["other.db"]):
            r = call("export", self.db, "-o", "-", *words)
            self.assertEqual((r.returncode, r.stdout), (2, b""), words)
        self.assertEqual(call("export").returncode, 2)
        r = call("export", self.db, "-o", "-", "--from", "900")
        self.assertEqual(r.returncode, 3)
        self.assertIn(b"has steps 0 to 19", r.stderr)
        text = call("help", "export").stdout.decode()
        self.assertIn("--finding", text)
        self.assertIn("syncline export run.db", text)


def views_of_schema_2():
    """Those that an export reads, as they were before collectives knew gaps."""
    text = catalogue.sql_text("views.sql")
    views = ["CREATE VIEW " + v.split(";")[0] for v in text.split("CREATE VIEW ")[1:]]
    old = ("run", "rank_info", "step", "rank_step", "collective", "drop_count", "finding", "gauge", "meta", "clock_quality")
    out = []
    for v in views:
        if v.split()[2] in old:
            v = re.sub(r", c\.gap,\n +CASE .*?AS latest_rank\n", "\n", v, flags=re.S)
            out.append(v.replace(",\n       compute_ns, idle_ns, host_ns", ""))
    return out


if __name__ == "__main__":
    unittest.main()
