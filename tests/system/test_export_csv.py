"""`syncline export --format csv`: each row is what the views say, to the nanosecond; and what an interrupted export leaves.

The file is read by Python's csv module in its strict mode, which knows nothing of the program."""
import collections
import csv
import glob
import io
import json
import os
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

import catalogue
import tracefile
from test_export import APART, BUILD, CASES, SHARED, SYNCLINE, call
from test_import import timeline

COLUMNS = """kind rank host track name step begin_ns end_ns dur_ns clock_error_ns dur_error_ns group seq op dtype bytes last_rank wait_ns
wait_error_ns self_ns exposed_comm_ns input_wait_ns excess_ratio coverage stream launch step_of_process value finding severity confidence text
more""".split()
TEXTS = {"kind", "host", "track", "name", "group", "op", "dtype", "severity", "confidence", "text", "more"}
NOT_KNOWN = 2**63 - 1


def text(v):
    return "" if v is None or v == NOT_KNOWN else str(v)


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

    def rows(self, *options):
        r = call("export", self.db, "--format", "csv", "-o", "-", *options)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.said, self.bytes = r.stderr.decode(), r.stdout
        self.assertTrue(r.stdout.endswith(b"\r\n"))
        lines = r.stdout.decode().split("\r\n")[:-1]
        self.assertFalse([line for line in lines if "\n" in line or "\r" in line])  # a row is a line
        head, *rows = csv.reader(io.StringIO(r.stdout.decode(), newline=""), strict=True)
        self.assertEqual(head, COLUMNS)
        self.assertEqual(len(rows), len(lines) - 1)
        for row in rows:
            self.assertEqual(len(row), len(COLUMNS))
            for name, v in zip(COLUMNS, row):
                if name not in TEXTS and v:
                    float(v)  # plain
            if row[-1]:
                self.assertIsInstance(json.loads(row[-1]), dict)
        return [dict(zip(COLUMNS, row)) for row in rows]


class Truth(Case):
    def check(self, db):
        rows = self.rows("--all")
        kinds = collections.defaultdict(list)
        for r in rows:
            kinds[r["kind"]].append(r)
        hosts = {str(r): h for r, h in db.execute("SELECT rank, host FROM rank_info")}
        for r in rows:
            self.assertEqual(r["host"], hosts.get(r["rank"], r["host"] if r["kind"] == "reading" else ""))
        steps = [{"rank": text(s["rank"]), "step": text(s["step"]), "begin_ns": text(s["begin_ns"]), "end_ns": text(s["begin_ns"] + s["dur_ns"]),
                  "dur_ns": text(s["dur_ns"]), "dur_error_ns": text(s["dur_err_ns"]), "clock_error_ns": text(s["begin_err_ns"]),
                  "wait_ns": text(s["wait_ns"]), "self_ns": text(s["self_ns"]), "exposed_comm_ns": text(s["exposed_comm_ns"]),
                  "input_wait_ns": text(s["input_wait_ns"])} for s in db.execute("SELECT * FROM rank_step ORDER BY rank, step")]
        self.assertEqual([{k: r[k] for k in steps[0]} for r in kinds["step"]], steps)
        ratios = [s for s, in db.execute("SELECT excess_ratio FROM rank_step ORDER BY rank, step")]
        self.assertEqual([float(r["excess_ratio"]) if r["excess_ratio"] else None for r in kinds["step"]], ratios)  # they read back the same
        self.check_calls(db, kinds)
        self.check_findings(db, kinds)
        return rows, kinds

    def check_calls(self, db, kinds):
        got = {(int(r["rank"]), r["group"], int(r["seq"])): r for r in kinds["collective"]}
        inside = collections.defaultdict(dict)
        for r in kinds["wait"] + kinds["transfer"]:
            if r["group"]:
                inside[int(r["rank"]), r["group"], int(r["seq"])][r["name"]] = r
        rows = db.execute("SELECT r.*, c.last_rank, c.decided, c.op, c.dtype, c.bytes, c.gap FROM collective_rank r JOIN collective c USING (comm_id, seq)").fetchall()
        self.assertEqual(sorted(got), sorted((c["rank"], c["comm_id"], c["seq"]) for c in rows))
        self.assertEqual(len(got), len(kinds["collective"]))
        for c in rows:
            key = c["rank"], c["comm_id"], c["seq"]
            r = got[key]
            self.assertEqual((r["begin_ns"], r["step"], r["name"], r["op"], r["dtype"], r["bytes"], r["clock_error_ns"], r["dur_ns"]),
                             (text(c["arrival_ns"]), text(c["step"]), c["op"], c["op"], c["dtype"], text(c["bytes"]), text(c["arrival_err_ns"]), text(c["dur_ns"])))
            self.assertEqual(r["end_ns"], "" if c["dur_ns"] is None else str(c["arrival_ns"] + c["dur_ns"]))  # one that never ended says so
            self.assertEqual(r["last_rank"], text(c["last_rank"]) if c["decided"] else "")
            self.assertEqual((r["wait_ns"], r["wait_error_ns"]), (text(c["wait_ns"]), text(c["wait_err_ns"]) if c["wait_ns"] is not None else ""))
            for name, v in inside[key].items():
                self.assertEqual((v["op"], v["step"]), (c["op"], text(c["step"])))
                if name == "gap before the call":
                    self.assertTrue(c["gap"])
                    self.assertEqual((v["begin_ns"], v["end_ns"], v["dur_ns"]), (str(c["arrival_ns"] - c["wait_ns"]), r["begin_ns"], text(c["wait_ns"])))
                elif name == "wait for the last" and c["dur_ns"] is not None:
                    self.assertEqual((v["begin_ns"], v["dur_ns"]), (r["begin_ns"], str(min(c["wait_ns"], c["dur_ns"]))))
            if c["gap"]:
                self.assertEqual(set(inside[key]), {"gap before the call"} if c["wait_ns"] else set())

    def check_findings(self, db, kinds):
        got = {int(r["finding"]): r for r in kinds["finding"] if not r["rank"]}
        for f in db.execute("SELECT * FROM finding"):
            r = got.pop(f["id"])
            self.assertEqual((r["name"], r["severity"], r["confidence"], r["text"].lstrip("'")), (f["class"], f["severity"], f["confidence"], f["sentence"]))
            self.assertEqual(json.loads(r["more"]).get("margin_ns"), f["margin_ns"])
        self.assertEqual(got, {})

    def test_rows_are_those_of_the_views(self):
        n = collections.Counter()
        for name in ("slow_fixed_rank", "clock_offset", "absent_stopped", "absent_crashed", "bubble_amplified", "uneven_input", APART):
            path = name if isinstance(name, dict) else os.path.join(CASES, name + ".json")
            if isinstance(path, str) and not os.path.exists(path):
                continue
            with self.subTest(case=name if isinstance(name, str) else "apart"):
                if os.path.exists(self.db):
                    os.unlink(self.db)
                rows, kinds = self.check(self.play(path))
                n.update({k: len(v) for k, v in kinds.items()})
                n["unfinished"] += sum(not r["end_ns"] for r in kinds["collective"])
        for kind in ("step", "collective", "wait", "transfer", "kernel", "finding", "arrival", "about", "unfinished"):
            self.assertGreater(n[kind], 3, (kind, n))

    def test_it_says_what_the_trace_says(self):
        """Slice for slice that of Perfetto; there a step may be drawn shorter than it was."""
        self.play(APART)
        rows = [r for r in self.rows("--all") if r["kind"] not in ("step", "about")]
        t = tracefile.read_perfetto(call("export", self.db, "--all", "-o", "-").stdout)
        def of_trace(s, end):
            process, track = t.place(s)
            return s.cat, process.split()[1] if process.startswith("rank") else "", track, s.name, str(s.begin), "" if end is None else str(end)
        wanted = [of_trace(s, None if s.args.get("unfinished") else s.end) for s in t.slices if s.cat != "step"]
        wanted += [of_trace(s, None) for s in t.instants if s.cat != "about"]
        got = [(r["kind"], r["rank"], r["track"], r["name"], r["begin_ns"], r["end_ns"]) for r in rows if r["kind"] != "reading"]
        self.assertEqual(collections.Counter(got), collections.Counter(wanted))
        streams = {(s.args["launch"], t.place(s)[1], str(s.begin)) for s in t.slices if s.cat == "kernel"}
        self.assertEqual({(int(r["launch"]), "stream " + r["stream"], r["begin_ns"]) for r in rows if r["kind"] == "kernel"}, streams)

    def test_a_part_of_it(self):
        self.play(os.path.join(CASES, "slow_fixed_rank.json"))
        rows = self.rows("--from", "5", "--to", "7", "--ranks", "1,3", "--without", "kernels")
        self.assertEqual({r["step"] for r in rows if r["kind"] in ("step", "collective")}, {"5", "6", "7"})
        self.assertEqual({r["rank"] for r in rows}, {"1", "3", ""})
        self.assertEqual([r for r in rows if r["kind"] == "kernel"], [])
        self.assertRegex(self.said, r"steps 5 to 7 of 0 to 32, ranks 1 …: about \d+ rows, \d+ kB")

    def test_its_size_is_said_about_right(self):
        for case in ("slow_fixed_rank", "bubble_amplified", "clock_offset"):
            if os.path.exists(self.db):
                os.unlink(self.db)
            self.play(os.path.join(CASES, case + ".json"))
            self.rows()
            n, unit = self.said.split(", ")[-1].split()
            self.assertTrue(0.4 < float(n) * {"kB": 1e3, "MB": 1e6}[unit] / len(self.bytes) < 4, (case, self.said, len(self.bytes)))

    def test_a_timeline_with_gaps(self):
        """Calls that begin everywhere at once: the wait lies before them, in the table and in the trace."""
        db = self.play(APART)
        db.execute("UPDATE raw_collective SET gap = 1")
        db.commit()
        self.check_gaps(db)

    def test_an_imported_timeline(self):
        path = os.path.join(self.dir, "t.json")
        with open(path, "w") as f:
            json.dump(timeline(300), f)
        self.assertEqual(call("import", path, "--db", self.db).returncode, 0)
        _, kinds = self.check(self.open())
        self.assertEqual(len(kinds["collective"]), 40)

    def test_a_published_timeline_with_gaps(self):
        files = sorted(glob.glob(os.path.join(SHARED, "straggler", "ST", "timeline*")))
        if not files:
            self.skipTest("../shared is not there")
        self.assertEqual(call("import", *files, "--db", self.db).returncode, 0)
        self.check_gaps(self.open())

    def check_gaps(self, db):
        self.check(db)
        gaps = {(r["rank"], r["comm_id"], r["arrival_ns"] - r["wait_ns"], r["arrival_ns"]) for r in db.execute(
            "SELECT r.* FROM collective_rank r JOIN collective c USING (comm_id, seq) WHERE c.gap AND r.wait_ns > 0")}
        self.assertGreater(len(gaps), 4)
        for format in ("perfetto", "chrome"):
            r = call("export", self.db, "--all", "--force", "--format", format, "-o", "-")
            self.assertEqual(r.returncode, 0, r.stderr)
            t = (tracefile.read_perfetto if format == "perfetto" else tracefile.read_chrome)(r.stdout)
            drawn = {(int(t.place(s)[0].split()[1]), t.place(s)[1][len("group "):], s.begin, s.end) for s in t.slices if s.name == "gap before the call"}
            self.assertEqual(drawn, gaps)
            called = {(c["comm_id"], c["seq"]) for c in db.execute("SELECT * FROM collective WHERE gap")}
            self.assertFalse([s for s in t.slices if s.name == "wait for the last" and (t.place(s)[1][len("group "):], s.parent.args["seq"]) in called])

    def test_an_imported_profile(self):
        files = [os.path.join(SHARED, "h200", f"kineto_ddp_rank{r}.json.gz") for r in (0, 1)]
        if not all(map(os.path.exists, files)):
            self.skipTest("../shared is not there")
        self.assertEqual(call("import", *files, "--db", self.db).returncode, 0)
        _, kinds = self.check(self.open())
        self.assertGreater(len(kinds["kernel"]), 1000)
        t = tracefile.read_perfetto(call("export", self.db, "--all", "-o", "-").stdout)
        for kind in ("kernel", "step", "collective", "scope", "work", "phase"):
            self.assertEqual(len(kinds[kind]), sum(s.cat == kind for s in t.slices), kind)


class Text(Case):
    HOSTILE = ['a,b', 'say "hi"', 'a;b|c', ' x ', "line\r\nbreak", 'é漢字', '=cmd|\' /C calc\'!A0', '+1', '-1+2', '@SUM(A1)', "\t=1", " =1+1", "＝1", "'quoted",
               '","=1', '"=1"', ""]

    def test_names_may_be_anything(self):
        catalogue.create(self.db).close()
        db = self.open()
        for i, name in enumerate(self.HOSTILE):
            db.execute("INSERT INTO raw_gauge VALUES (?, 1, 0, ?, ?)", (catalogue.START_NS + i, name, i + 0.1))
        db.execute("UPDATE raw_host SET name = CAST(x'ff41c328' AS TEXT) WHERE host_id = 1")
        db.execute("UPDATE raw_group SET name = '=HYPERLINK(\"http://x\")'")
        catalogue.put_verdict(db, sentence='-2+3+cmd|"x"!A0, \x1b]0;x\x07')
        db.commit()
        rows = self.rows()
        got = {int(r["begin_ns"]) - catalogue.START_NS: r for r in rows if r["kind"] == "reading"}
        for i, name in enumerate(self.HOSTILE):
            clean = "".join("?" if ord(c) < 32 else c for c in name)
            formula = clean.lstrip(" ")[:1] in tuple("=+-@'＝＋－＠") and clean.strip(" ") != ""
            self.assertEqual(got[i]["name"], ("'" if formula else "") + clean)
            self.assertEqual(float(got[i]["value"]), i + 0.1)
        self.assertEqual({r["group"] for r in rows if r["kind"] == "collective"}, {"'=HYPERLINK(\"http://x\")"})
        self.assertEqual({r["text"] for r in rows if r["kind"] == "finding"}, {"'-2+3+cmd|\"x\"!A0, ?]0;x?"})
        for r in rows:  # in no cell of the job's own text does a formula begin
            for column in TEXTS:
                self.assertNotRegex(r[column], r"^ *[=+@\-＝＋－＠\t\r]", column)
        for line in self.bytes.decode().split("\r\n"):  # nor for one who takes semicolons to separate: what has them is quoted
            outside = "".join(line.split('"')[::2])
            self.assertNotIn(";", outside)

    def test_readings_are_of_a_rank_or_a_host(self):
        catalogue.create(self.db).close()
        db = self.open()
        db.execute("INSERT INTO raw_gauge VALUES (?, 1, 0, 'memory', 1e300), (?, 2, NULL, 'load', 0.25)", (catalogue.START_NS + 5, catalogue.START_NS + 6))
        db.commit()
        hosts = dict(db.execute("SELECT host_id, name FROM raw_host"))
        got = [(r["name"], r["rank"], r["host"], r["value"]) for r in self.rows() if r["kind"] == "reading"]
        self.assertEqual(sorted(got), [("load", "", hosts[2], "0.25"), ("memory", "0", hosts[1], "1e+300")])
        self.assertEqual([r for r in self.rows("--without", "counters") if r["kind"] == "reading"], [])


class Interrupted(Case):
    """A signal that ends an export leaves what was there before, and nobody running."""

    def children(self, pid):
        out = []
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path) as f:
                    fields = f.read().rsplit(")", 1)
            except OSError:
                continue
            if int(fields[1].split()[1]) == pid and fields[1].split()[0] != "Z":
                out.append(int(path.split("/")[2]))
        return out

    def interrupt(self, format, number, when):
        out = os.path.join(self.dir, "x." + format)
        with open(out, "w") as f:
            f.write("mine")
        p = subprocess.Popen([SYNCLINE, "export", self.db, "--format", format, "--force", "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        children, deadline = [], time.monotonic() + 60
        try:
            while p.poll() is None and time.monotonic() < deadline:
                children = self.children(p.pid)
                if when(children) and glob.glob(glob.escape(out) + ".part-*"):
                    break
                time.sleep(0.001)
            self.assertIsNone(p.poll(), "it was over before it could be interrupted")
            p.send_signal(number)
            self.assertEqual(p.wait(30), -number)
        finally:
            if p.poll() is None:
                p.kill()
                p.wait()
        self.assertEqual([n for n in os.listdir(self.dir) if ".part-" in n], [])
        with open(out) as f:
            self.assertEqual(f.read(), "mine")
        return children

    def big(self):
        catalogue.create(self.db, world=64, seen=64, steps=400).close()

    def test_its_part_goes_with_it(self):
        self.big()
        for format in ("perfetto", "csv"):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(format=format, signal=number):
                    self.interrupt(format, number, lambda children: True)

    def test_the_collector_of_a_page_ends_too(self):
        if not glob.glob(os.path.join(BUILD, "syncline-collector")):
            self.skipTest("there is no collector in this build")
        self.big()
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                children = self.interrupt("html", number, bool)
                self.assertEqual(len(children), 1)
                self.gone(children[0])

    def gone(self, pid):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                with open(f"/proc/{pid}/stat") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return
            except OSError:
                return
            time.sleep(0.01)
        self.fail("the collector goes on")

    def test_the_collector_ends_with_a_program_that_was_killed(self):
        self.big()
        p = subprocess.Popen([SYNCLINE, "export", self.db, "--format", "html", "-o", os.path.join(self.dir, "x.html")],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        children = []
        while not children and p.poll() is None:
            children = self.children(p.pid)
        p.kill()
        p.wait()
        self.assertEqual(len(children), 1)
        self.gone(children[0])


if __name__ == "__main__":
    unittest.main()
