"""Critical paths in catalogues: they tile their steps, hand-overs are what collectives say, and what is not kept is found
again by `syncline path`.

Every case of tests/cases is played, and every case beside the tree where there are any."""
import glob
import json
import os
import sqlite3
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
CASES = (sorted(glob.glob(os.path.join(ROOT, "tests", "cases", "*", "*.json"))) +
         sorted(glob.glob(os.path.join(ROOT, "..", "shared", "cases", "specs", "*.json"))))
MS = 1_000_000

# Rank 2 is slow from step 3 on and rank 0 goes on when the others are done; two hosts with clocks of their own.
APART = {"id": "APART", "world": 4, "hosts": {"a": "0-1", "b": "2-3"}, "clock": {"2": [7000, 3], "3": [7000, 3]}, "probes": 1,
         "prog": {"*": [["cpu", 3000, "start"]],
                  "0": [["rep", 9, [["step"], ["k", 20, "work"], ["coll", "dp", "allreduce", 4096, "f32", 4], ["wait", "dp"],
                                    ["k", 2, "save"], ["sync"]]]],
                  "1,3": [["rep", 9, [["step"], ["k", 20, "work"], ["coll", "dp", "allreduce", 4096, "f32", 4], ["sync"]]]],
                  "2": [["rep", 3, [["step"], ["k", 20, "work"], ["coll", "dp", "allreduce", 4096, "f32", 4], ["sync"]]],
                        ["rep", 6, [["step"], ["k", 26, "work"], ["coll", "dp", "allreduce", 4096, "f32", 4], ["sync"]]]]}}


def call(*words):
    return subprocess.run([SYNCLINE, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


class Path(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.n = 0

    def play(self, case, *options):
        self.n += 1
        path = case
        if not isinstance(case, str):
            path = os.path.join(self.dir, f"{self.n}.json")
            with open(path, "w") as f:
                json.dump(case, f)
        self.file = os.path.join(self.dir, f"{self.n}.db")
        r = call("sim", path, "--db", self.file, *options)
        self.assertEqual(r.returncode, 0, r.stderr)
        db = sqlite3.connect(self.file)
        db.row_factory = sqlite3.Row
        self.addCleanup(db.close)
        return db

    def path(self, step, *options):
        r = call("path", self.file, str(step), "--json", *options)
        self.assertEqual(r.returncode, 0, r.stderr)
        return json.loads(r.stdout)

    def check_tiles(self, db):
        for p in db.execute("SELECT * FROM step_path").fetchall():
            at = p["begin_ns"]
            for s in db.execute("SELECT * FROM critical_path WHERE step = ? ORDER BY n", (p["step"],)):
                self.assertEqual((s["begin_ns"], s["end_ns"] - s["begin_ns"]), (at, s["dur_ns"]))
                self.assertGreaterEqual(s["dur_ns"], 0)
                at = s["end_ns"]
            self.assertEqual(at, p["begin_ns"] + p["dur_ns"])
            self.assertTrue(p["complete"])
        sums = "SELECT step, sum({}) AS ns FROM {} GROUP BY step ORDER BY step"
        self.assertEqual([tuple(r) for r in db.execute(sums.format("path_ns", "blame_step"))],
                         [tuple(r) for r in db.execute(sums.format("dur_ns", "critical_path"))])

    def test_segments_tile_every_step(self):
        n = 0
        for case in CASES:
            for options in ((), ("--noise", "0.05", "--seed", "3"))["SYNCLINE_QUICK" in os.environ:]:
                with self.subTest(case=os.path.basename(case), options=options):
                    db = self.play(case, *options)
                    self.check_tiles(db)
                    lacking = db.execute("SELECT step FROM step WHERE complete AND step NOT IN (SELECT step FROM step_path)").fetchall()
                    self.assertEqual([tuple(r) for r in lacking], [])
                    n += db.execute("SELECT count(*) FROM step_path").fetchone()[0]
                    db.close()
        self.assertGreater(n, 100)

    def test_a_step_that_the_host_waits_out_is_as_long_as_its_path(self):
        db = self.play(APART)
        for s in db.execute("SELECT s.dur_ns, s.dur_err_ns, p.dur_ns AS path_ns FROM step s JOIN step_path p USING (step)"):
            self.assertAlmostEqual(s["dur_ns"], s["path_ns"], delta=s["dur_err_ns"])
        exact = os.path.join(ROOT, "tests", "cases", "rules", "R15_healthy.json")
        db = self.play(exact)
        self.assertEqual(db.execute("SELECT count(*), sum(s.dur_ns <> p.dur_ns) FROM step s JOIN step_path p USING (step)")
                         .fetchone()[:], (30, 0))

    def test_decided_hand_overs_are_those_of_the_collectives(self):
        db = self.play(APART)
        rows = db.execute("SELECT p.step, p.from_rank, c.last_rank, p.held_ns, p.held_err_ns FROM critical_path p "
                          "JOIN collective c USING (comm_id, seq) WHERE p.from_rank IS NOT NULL AND NOT p.undecided").fetchall()
        self.assertGreaterEqual(len(rows), 6)
        for r in rows:
            self.assertEqual(r["from_rank"], r["last_rank"])
            if r["step"] >= 3:
                self.assertEqual(r["from_rank"], 2)
                self.assertAlmostEqual(r["held_ns"], 4 * MS, delta=r["held_err_ns"] + 100)

    def test_what_is_late_is_blamed_and_its_peers_have_slack(self):
        db = self.play(APART)
        excess = dict(db.execute("SELECT who, excess_ns FROM blame_by WHERE by = 'rank'").fetchall())
        self.assertAlmostEqual(excess["2"], 6 * 6 * MS, delta=MS / 10)
        self.assertAlmostEqual(sum(v for k, v in excess.items() if k != "2" and v), 0, delta=MS / 10)
        self.assertEqual(db.execute("SELECT path_ns > 100000000, excess_ns > 35000000, held_ns > 20000000 FROM blame "
                                    "WHERE rank = 2").fetchone()[:], (1, 1, 1))
        for s in db.execute("SELECT * FROM slack WHERE step >= 4"):
            self.assertAlmostEqual(s["slack_ns"], {0: 4, 1: 6, 2: 0, 3: 6}[s["rank"]] * MS, delta=s["slack_err_ns"] + 100)
        said = json.loads(call("report", self.file, "--json").stdout)["blame"]
        self.assertEqual((said["top"][0]["rank"], said["top"][0]["name"]), (2, "work"))
        self.assertEqual(said["n_steps"], 9)
        self.assertIn("Who held the steps", call("report", self.file).stdout)

    def test_what_is_followed_anew_is_what_was_told(self):
        for case in [c for c in CASES if "verdicts" in c and "healthy" in c][::4]:
            with open(case) as f:
                if "clock" in json.load(f):
                    continue
            db = self.play(case)
            for (step,) in [tuple(r) for r in db.execute("SELECT step FROM step_path")]:
                self.assertEqual(self.path(step), self.path(step, "--again"))
            db.close()
        self.play(APART)  # by then more is known of the clocks
        for step in range(4, 9):
            told, again = self.path(step), self.path(step, "--again")
            self.assertAlmostEqual(told["dur_ns"], again["dur_ns"], delta=told["dur_err_ns"] + again["dur_err_ns"])
            self.assertEqual([(s["rank"], s["name"], s["from_rank"]) for s in again["segments"]][-3:],
                             [(2, "work", None), (0, None, 2), (0, "save", None)])

    def test_detail_is_kept_of_the_newest_and_found_for_the_others(self):
        db = self.play({"id": "LONG", "world": 2, "prog": {
            "0": [["rep", 300, [["step"], ["k", 5, "work"], ["coll", "dp", "allreduce", 4096, "f32", 1], ["sync"]]]],
            "1": [["rep", 300, [["step"], ["k", 4, "work"], ["coll", "dp", "allreduce", 4096, "f32", 1], ["sync"]]]]}})
        kept = [s for (s,) in db.execute("SELECT step FROM step_path WHERE kept ORDER BY step")]
        cited = {s for (s,) in db.execute("SELECT first_step FROM finding UNION SELECT last_step FROM finding UNION "
                                          "SELECT e.value ->> 'step' FROM finding f, json_each(f.evidence) e WHERE e.type = 'object'")}
        self.assertEqual([s for s in kept if s not in cited], [s for s in range(44, 300) if s not in cited])
        self.assertLess(len(kept), 270)
        self.assertEqual(db.execute("SELECT count(*), min(path_ns) > 0 FROM (SELECT sum(path_ns) AS path_ns FROM blame_step GROUP BY step)")
                         .fetchone()[:], (300, 1))
        old = self.path(7)
        self.assertEqual([(s["rank"], s["kind"], s["from_rank"]) for s in old["segments"]][-2:],
                         [(0, "kernel", None), (0, "transfer", None)])
        text = call("path", self.file, "7").stdout
        self.assertIn("Step 7 took 6.01 ms", text)

    def test_every_edge_is_told_to_one_who_asks(self):
        self.play(APART)
        v = self.path(5, "--edges")
        kinds = {}
        for e in v["edges"]:
            kinds.setdefault(e["kind"], []).append(e)
            self.assertGreaterEqual(e["to_ns"] - e["from_ns"], -e["err_ns"], e)
        self.assertEqual((len(kinds["entry"]), len(kinds["end"])), (4, 4))  # one join: twice the ranks
        self.assertEqual(sorted(kinds), ["end", "entry", "launch", "program", "stream", "wait"])
        db = sqlite3.connect(self.file)
        self.addCleanup(db.close)
        self.assertEqual(dict(db.execute("SELECT kind, count(*) FROM edge WHERE step = 5 GROUP BY kind").fetchall()),
                         {"entry": 4, "end": 4, "hand_over": sum(s["from_rank"] is not None for s in v["segments"])})

    def test_calls_of_a_device_have_their_stages(self):
        db = self.play({"id": "STAGES", "world": 2, "prog": {"*": [["rep", 2, [
            ["step"], ["k", 5, "bwd"], ["coll", "dp", "allreduce", 4096, "f32", 2], ["k", 3, "bwd"], ["wait", "dp"],
            ["k", 1, "opt"], ["sync"]]]]}})
        rows = db.execute("SELECT *, started_ns - ready_ns AS q, reduced_ns - started_ns AS r, applied_ns - reduced_ns AS u, "
                          "submitted_ns < ready_ns AS ahead FROM bucket_stage ORDER BY step, rank").fetchall()
        self.assertEqual([(r["step"], r["rank"], r["ddp"], r["bucket"], r["comm_id"], r["bytes"], r["seq"]) for r in rows],
                         [(s, k, None, 0, "dp", 16384, s + 1) for s in (0, 1) for k in (0, 1)])
        for r in rows:  # reduced in 2 ms beside 3 ms of backward, then 1 ms of optimizer
            self.assertEqual((r["q"], r["r"], r["u"], r["ahead"]), (0, 2 * MS, 2 * MS, 1))

    def test_a_step_that_is_not_there_is_said_so(self):
        self.play({"id": "NONE", "world": 1, "prog": {"*": [["step"], ["k", 1, "a"], ["sync"]]}})
        r = call("path", self.file, "5")
        self.assertEqual(r.returncode, 3)
        self.assertIn("no step 5", r.stderr)
        self.assertEqual(call("path", self.file).returncode, 2)
        self.assertEqual(call("path", self.file, "x").returncode, 2)


if __name__ == "__main__":
    unittest.main()
