#!/usr/bin/env python3
"""Traces of other tools through `syncline import`: what comes of good and bad files, and whether published jobs
get their published answers.

The published traces lie beside the checkout (../shared/data); without them those tests are skipped."""
import gzip
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import unittest

import json_schema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
DATA = os.path.join(os.path.dirname(ROOT), "shared", "data")
WITHIN = 0.02


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

    def report(self):
        r = call("report", self.db, "--json")
        self.assertIn(r.returncode, (0, 1, 4, 5), r.stderr)
        v = json.loads(r.stdout)
        with open(os.path.join(ROOT, "docs", "report.schema.json"), encoding="utf-8") as f:
            self.assertEqual(json_schema.problems(v, json.load(f)), [])
        return v


def span(name, dp, pp, lane, us, dur, step):
    return {"name": name, "pid": dp, "tid": 5 * (2 * pp + dp) + lane, "ts": us, "dur": dur, "ph": "X",
            "args": {"step": step, "model_chunk": 0, "mb_id": 0, "seq_id": 0}}


def timeline(late_us):
    """Two stages, two replicas; stage 1 of replica 1 computes longer. Every step is drawn a tenth of its length
    behind the one before."""
    events, t = [], 1000.0
    for step in (3, 4, 7, 9, 12):
        end = t
        for dp in (0, 1):
            slow = dp * late_us
            events += [span("params-all-gather", dp, pp, 3, t, 50, step) for pp in (0, 1)]
            events += [
                span("forward-compute", dp, 0, 0, t + 50, 100, step),
                span("forward-send", dp, 0, 1, t + 150, 10, step), span("forward-recv", dp, 1, 1, t + 150, 10, step),
                span("forward-compute", dp, 1, 0, t + 160, 100 + slow, step),
                span("backward-compute", dp, 1, 0, t + 260 + slow, 200, step),
                span("backward-send", dp, 1, 1, t + 460 + slow, 10, step),
                span("backward-recv", dp, 0, 1, t + 460 + slow, 10, step),
                span("backward-compute", dp, 0, 0, t + 470 + slow, 200, step),
                span("grads-reduce-scatter", dp, 1, 3, t + 470 + late_us, 40, step),
                span("grads-reduce-scatter", dp, 0, 3, t + 670 + late_us, 40, step)]
            end = t + 710 + late_us
        t = end + (end - t) / 10
    for dp in (0, 1):
        for pp in (0, 1):
            for lane, what in enumerate(("compute", "pp-comm", "tp-comm", "dp-comm", "misc")):
                events.append({"name": "thread_name", "ph": "M", "pid": dp, "tid": 5 * (2 * pp + dp) + lane,
                               "args": {"name": f"PP rank {pp}, TP rank 0, {what}"}})
    return events


def profile(rank, late_us, ahead_us):
    """Rank 1 comes late_us late to each step's all-reduce; its clock is ahead by ahead_us."""
    events, correlation = [], 0
    for step in range(10, 16):
        t = 1000 + 5000 * step + ahead_us * rank
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 9, "tid": 9,
                       "ts": t, "dur": 4990})
        for name, at, dur, more in (
                ("gemm", 100, 300, {}),
                ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 500 + late_us * rank, 100 + late_us * (1 - rank),
                 {"Collective name": "allreduce", "In msg nelems": 1024, "Group size": 2, "dtype": "Float",
                  "Process Group Name": "0", "Process Group Description": "default_pg",
                  "Process Group Ranks": "[0, 1]"})):
            correlation += 1
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9,
                           "ts": t + at - 20, "dur": 5, "args": {"correlation": correlation}})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": t + at, "dur": dur,
                           "args": {"stream": 7, "correlation": correlation, **more}})
    return {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2},
            "baseTimeNanoseconds": 1700000000000000000, "traceEvents": events}


class Own(Folder):
    def test_a_timeline_is_a_job_with_steps_waits_and_a_replay(self):
        r = call("import", self.file("t.json", timeline(300)), "--db", self.db)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        v = self.report()
        self.assertEqual((v["run"]["world_size"], v["steps"]["n"], v["steps"]["first"], v["steps"]["last"]),
                         (4, 5, 3, 12))
        self.assertEqual(v["coverage"]["inputs"][0]["format"], "StragglerAnalysis timeline")
        self.assertEqual(v["clock"]["method"], "one clock: the file's own time line")
        w = v["what_if"]
        self.assertEqual((w["method"], w["steps"], w["step_ns"]), ("replay of operations", 5, 1010000))
        self.assertEqual(w["by_rank"][0]["rank"], 3)
        self.assertGreater(w["by_rank"][0]["share"], 0.9)
        self.assertEqual(w["worst_ranks"][0]["name"], "3")
        self.assertEqual([p["stage"] for p in w["by_stage"]], [1, 0])
        # Replica 0's stage 1 waits 300 us for replica 1's: a gap before its reduce-scatter.
        rows = call("sql", self.db, "SELECT rank, sum(wait_ns) AS ns FROM collective_rank "
                    "WHERE comm_id LIKE 'grads%stage 1' GROUP BY rank").stdout.split()
        self.assertEqual(rows, ["rank,ns", f"2,{5 * 300000}", "3,0"])
        shown = call("report", self.db).stdout
        self.assertIn("rank 3: it alone makes a step", shown)
        self.assertEqual([(x["class"], x["culprit"]["ranks"], x["first_step"], x["last_step"])
                          for x in v["verdicts"] if x["severity"] != "notice"], [("slow.fixed_rank", [3], 3, 12)])
        rows = call("sql", self.db, "SELECT rank, share_ratio FROM what_if WHERE scope = 'rank' AND rank = 3").stdout
        self.assertTrue(rows.startswith("rank,share_ratio\n3,"), rows)

    def test_a_schedule_that_is_not_understood_is_not_replayed(self):
        events = timeline(300)
        events[2]["args"]["model_chunk"] = 1
        r = call("import", self.file("t.json", events), "--db", self.db)
        self.assertEqual(r.returncode, 0)
        self.assertIn("it is not replayed: its stages have several model chunks", r.stdout)
        v = self.report()
        self.assertIsNone(v["what_if"]["slowdown"])
        self.assertEqual(v["steps"]["n"], 5)

    def test_an_even_job_has_no_verdict(self):
        self.assertEqual(call("import", self.file("t.json", timeline(0)), "--db", self.db).returncode, 0)
        v = self.report()
        self.assertEqual(v["verdicts"], [])
        self.assertAlmostEqual(v["what_if"]["slowdown"], 1, places=6)

    def test_profiles_of_two_ranks_are_placed_by_their_collectives(self):
        files = [self.file(f"rank{r}.json", profile(r, 900, 40000)) for r in (0, 1)]
        r = call("import", *files, "--db", self.db)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        v = self.report()
        self.assertEqual(v["coverage"]["ranks_seen"], 2)
        self.assertIn("ends of collectives", v["clock"]["method"])
        by_host = {h["host"]: h for h in v["clock"]["hosts"]}
        apart = by_host["of rank 0"]["offset_ns"] - by_host["of rank 1"]["offset_ns"]
        error = by_host["of rank 0"]["error_ns"] + by_host["of rank 1"]["error_ns"]
        self.assertLess(abs(apart - 40000000), 1000)
        self.assertLess(error, 1100000)
        late = call("sql", self.db, "SELECT rank, lateness_ns FROM collective_rank WHERE lateness_ns > 0").stdout.split()
        self.assertEqual(len(late), 1 + 6)
        for row in late[1:]:
            rank, ns = row.split(",")
            self.assertEqual((rank, round(int(ns) / 10000)), ("1", 90))
        self.assertEqual(v["what_if"]["by_rank"][0]["rank"], 1)
        saved = v["what_if"]["step_ns"] - v["what_if"]["by_rank"][0]["without_ns"]
        self.assertAlmostEqual(saved / 900000, 1, delta=0.01)

    def test_a_bad_file_costs_only_itself(self):
        good = self.file("rank0.json", profile(0, 900, 0))
        for name, content, why in (
                ("a.json", b"not json", "is of no format that this release reads"),
                ("b.json", b"", "is empty"),
                ("c.json", b'{"traceEvents":[{"ph":"X"', "is no JSON: "),
                ("d.json", b'{"some":"thing"}', "is of no format that this release reads"),
                ("e.json", b"[[1]]", "events are no list of objects, near byte 1"),
                ("f.json.gz", gzip.compress(json.dumps(profile(1, 0, 0)).encode())[:300], "damaged or cut off"),
                ("g.json", b"[" * 100000, "is nested too deeply"),
                ("h.json", profile(0, 0, 0), "is of rank 0, and so was a file before it")):
            bad = self.file(name, content)
            if os.path.exists(self.db):
                os.unlink(self.db)
            r = call("import", good, bad, "--db", self.db, "--json")
            self.assertEqual(r.returncode, 5, r.stderr)
            v = json.loads(r.stdout)
            self.assertEqual([i["ok"] for i in v["inputs"]], [True, False])
            self.assertIn(why, v["inputs"][1]["outcome"])
            self.assertIn(why, call("report", self.db).stdout)

    def test_any_number_of_jobs_gives_the_same(self):
        files = [self.file(f"rank{r}.json", profile(r, 900, 40000)) for r in (0, 1)]
        files += [self.file("again.json", profile(1, 0, 0)), self.file("bad.json", b"not json"),
                  self.file("t.json", timeline(0)), self.file("cut.json", json.dumps(profile(2, 0, 0)).encode()[:900])]
        seen = set()
        for words in ([], ["--jobs", "1"], ["--jobs", "2"], ["--jobs", "9"]):
            if os.path.exists(self.db):
                os.unlink(self.db)
            r = call("import", *words, *files, "--db", self.db, "--json")
            self.assertEqual(r.returncode, 5, r.stderr)
            seen.add((r.stdout, call("report", self.db, "--json").stdout,
                      call("sql", self.db, "SELECT * FROM collective_rank").stdout))
        self.assertEqual(len(seen), 1)
        outcomes = [i["outcome"] for i in json.loads(r.stdout)["inputs"]]
        self.assertIn("is of rank 1, and so was a file before it", outcomes[2])
        self.assertIn("a file before it is of one, too", outcomes[4])
        for wrong in ("0", "x", "257", "-1", "2x"):
            self.assertEqual(call("import", "--jobs", wrong, *files, "--db", self.db).returncode, 2)

    def test_what_profilers_write_wrong_is_read_and_said(self):
        text = json.dumps(profile(0, 900, 0)).encode()
        text = text.replace(b'"gemm"', b'"gemm \xff\x01 C:\\dir"').replace(b'"dur": 4990', b'"dur": 4990, "load": NaN')
        r = call("import", self.file("rank0.json", text), "--db", self.db)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertIn("12 of its values are written as JSON does not allow", r.stdout)
        self.assertEqual(self.report()["steps"]["n"], 6)

    def test_without_a_good_file_there_is_no_database(self):
        fifo = os.path.join(self.dir, "fifo")
        os.mkfifo(fifo)
        r = call("import", self.file("a.json", b"x"), os.path.join(self.dir, "none"), fifo, "--db", self.db)
        self.assertEqual(r.returncode, 3)
        self.assertIn("no file could be imported", r.stderr)
        self.assertIn("No such file or directory", r.stdout)
        self.assertIn("it is no file", r.stdout)
        self.assertFalse(os.path.exists(self.db))

    def test_a_file_that_is_there_is_not_written_over(self):
        with open(self.db, "w") as f:
            f.write("mine")
        r = call("import", self.file("t.json", timeline(0)), "--db", self.db)
        self.assertEqual(r.returncode, 3)
        self.assertIn("is there already", r.stderr)
        with open(self.db) as f:
            self.assertEqual(f.read(), "mine")

    def test_wrong_use(self):
        self.assertEqual(call("import", "x").returncode, 2)
        self.assertEqual(call("import", "--db", self.db).returncode, 2)


class Large(Folder):
    """Files of which little has room in memory."""
    MEMORY = 2 # MiB
    ALLOWANCE = 8 << 20

    def large(self, rank, n_steps):
        """profile() with that many steps and 40 times the kernels, written step by step."""
        v = profile(rank, 900, 40000)
        first = [e for e in v["traceEvents"] if e["ts"] < v["traceEvents"][0]["ts"] + 5000]
        step, gemm, call = first[0], first[1:3], first[3:]
        events = [step] + [{**e, "ts": e["ts"] + 7 * i, "dur": 5, "args": {**e["args"], "correlation": 10 + i}}
                           for i in range(40) for e in gemm] + call
        path = os.path.join(self.dir, f"rank{rank}.json")
        with open(path, "w") as f:
            head, tail = json.dumps({**v, "traceEvents": ["HERE"]}).split('"HERE"')
            f.write(head)
            for n in range(n_steps):
                for e in events:
                    e = {**e, "ts": e["ts"] + 5000 * n, "name": e["name"].replace("#10", f"#{10 + n}")}
                    if "args" in e:
                        e["args"] = {**e["args"], "correlation": e["args"]["correlation"] + 100 * n}
                    f.write(("," if n or e["name"][0] != "P" else "") + json.dumps(e))
            f.write(tail)
        return path

    # A process begins with what its parent had, so a small one starts it.
    STARTER = ("import os, sys; pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ); _, s, u = os.wait4(pid, 0); "
               "print(os.waitstatus_to_exitcode(s), u.ru_maxrss * 1024)")

    def peak(self, *words):
        """Exit status and resident bytes at most."""
        r = subprocess.run([sys.executable, "-S", "-E", "-c", self.STARTER, SYNCLINE, *words], text=True, capture_output=True,
                           timeout=300)
        self.said = r.stderr
        return map(int, r.stdout.split("\n")[-2].split())

    @unittest.skipIf("SYNCLINE_QUICK" in os.environ, "a sanitizer's own memory grows with what was ever allocated")
    def test_a_file_four_times_as_large_takes_no_more_memory(self):
        peaks, sizes = [], []
        for n_steps in (300, 1200):
            files = [self.large(r, n_steps) for r in (0, 1)]
            sizes.append(sum(map(os.path.getsize, files)))
            if os.path.exists(self.db):
                os.unlink(self.db)
            status, peak = self.peak("import", *files, "--db", self.db, "--memory", str(self.MEMORY))
            self.assertEqual(status, 0, self.said)
            self.assertGreater(peak, 15 << 20) # more than its starter had
            peaks.append(peak)
            rows = call("sql", self.db, "SELECT count(*) AS n, count(DISTINCT seq) AS seqs FROM collective").stdout.split()
            self.assertEqual(rows, ["n,seqs", f"{n_steps},{n_steps}"])
        self.assertGreater(sizes[1], 3.9 * sizes[0])
        self.assertLess(peaks[1], peaks[0] + self.ALLOWANCE)

    def test_what_has_no_room_in_memory_gives_the_same_database(self):
        files = [self.large(r, 300) for r in (0, 1)]
        shown = []
        for memory in (1, 1000):
            db = os.path.join(self.dir, "same.db")
            self.assertEqual(call("import", *files, "--db", db, "--memory", str(memory)).returncode, 0)
            shown.append(call("report", db, "--json").stdout +
                         call("sql", db, "SELECT * FROM collective_rank ORDER BY seq, rank").stdout)
            os.unlink(db)
        self.assertEqual(shown[0], shown[1])

    def test_a_disk_that_is_full_is_said_and_leaves_no_database(self):
        files = [self.large(r, 500) for r in (0, 1)]
        seen = []
        # The first limit is met by what has no room in memory, the last by the database alone.
        for memory, limit in (("1", 1 << 20), ("1", 4 << 20), ("1000", 2 << 20)):
            r = subprocess.run([SYNCLINE, "import", *files, "--db", self.db, "--memory", memory], text=True,
                               capture_output=True, timeout=300, restore_signals=False,
                               preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            self.assertEqual(r.returncode, 3, r.stderr)
            self.assertEqual([f for f in os.listdir(self.dir) if not f.startswith("rank")], [])
            seen.append(r.stderr)
        self.assertIn("does not fit into memory", seen[0])
        self.assertIn("--tmp", seen[0])
        self.assertNotIn("--tmp", seen[2])
        for said in seen:
            self.assertTrue(said.strip())

    def test_a_folder_for_it_that_is_not_there_is_named(self):
        files = [self.large(r, 500) for r in (0, 1)]
        r = call("import", *files, "--db", self.db, "--memory", "1", "--tmp", os.path.join(self.dir, "none"))
        self.assertEqual(r.returncode, 3)
        self.assertIn(os.path.join(self.dir, "none") + ": No such file or directory", r.stderr)
        self.assertFalse(os.path.exists(self.db))


@unittest.skipUnless(os.path.isdir(os.path.join(DATA, "straggler")), "the published timelines are not beside the checkout")
class Published(Folder):
    """S, worker and stage factors of the published analysis of the same traces."""

    def check(self, name):
        folder = os.path.join(DATA, "straggler", name)
        r = call("import", os.path.join(folder, f"timeline-{name}.json.gz"), "--db", self.db)
        self.assertEqual(r.returncode, 0, r.stderr)
        w = self.report()["what_if"]
        truth = os.path.join(DATA, "_truth", "straggler", name)
        with open(os.path.join(truth, f"result-{name}.json")) as f:
            result = json.load(f)
        with open(os.path.join(truth, f"mw-{name}.json")) as f:
            worker = json.load(f)
        with open(os.path.join(truth, f"ms-{name}.json")) as f:
            stage = json.load(f)

        def near(got, want, what):
            self.assertLess(abs(got / want - 1), WITHIN, what)

        near(w["slowdown"], result["blocking_slowdown"], "S")
        near(w["step_ns"], 1e9 * worker["tori"], "T")
        near(w["without_ns"], 1e9 * worker["tideal"], "T ideal")
        for p in w["by_stage"]:
            near(p["slowdown"], result["blocking_decompose_by_stage"][str(p["stage"])], f"stage {p['stage']}")
        for p in w["by_replica"]:
            near(p["slowdown"], result["blocking_decompose_by_dp_rank"][p["name"]], f"replica {p['name']}")
        kinds = {p["name"]: p["slowdown"] for p in w["by_kind"]}
        for kind, want in result["blocking_decompose_by_optype"].items():
            kind = {"forward-pp-comm": "forward messages", "backward-pp-comm": "backward messages"}.get(kind, kind)
            near(kinds[kind], want, kind)
        near(w["worst_ranks"][0]["without_ns"], 1e9 * worker["trem"], "without the worst workers")
        near(w["worst_ranks"][0]["slowdown"], worker["tadd"] / worker["tideal"], "the worst workers alone")
        near(w["last_stage"][0]["without_ns"], 1e9 * stage["trem"], "without the last stage")
        self.assertLess(abs(w["worst_ranks"][0]["share"] - worker["Mw"]), WITHIN)
        self.assertLess(abs(w["last_stage"][0]["share"] - stage["Ms"]), WITHIN)
        return w

    def test_ar_is_one_slow_worker(self):
        w = self.check("AR")
        self.assertEqual((w["worst_ranks"][0]["name"], w["by_rank"][0]["rank"]), ("0", 0))
        said = self.report()["coverage"]["inputs"][0]["outcome"]
        self.assertIn("the 16 workers", said) # four tensor ranks each, of which the file shows one
        self.assertGreater(w["by_rank"][0]["share"], 0.95)
        self.assertEqual([(x["class"], x["culprit"]["ranks"]) for x in self.report()["verdicts"]
                          if x["severity"] != "notice"], [("slow.fixed_rank", [0])])

    def test_st_is_the_last_stage(self):
        w = self.check("ST")
        self.assertEqual(w["by_stage"][0]["stage"], 3)
        self.assertGreater(w["by_stage"][0]["share"], 0.95)
        self.assertLess(w["worst_ranks"][0]["share"], 0.1)
        self.assertNotIn("slow.fixed_rank", [x["class"] for x in self.report()["verdicts"]])


@unittest.skipUnless(os.path.isdir(os.path.join(DATA, "h200")), "the recordings of two GPUs are not beside the checkout")
class Recorded(Folder):
    def import_mode(self, mode):
        files = [os.path.join(DATA, "h200", f"kineto_{mode}_rank{r}.json.gz") for r in (0, 1)]
        r = call("import", *files, "--db", self.db)
        self.assertEqual(r.returncode, 0, r.stderr)
        v = self.report()
        self.assertEqual((v["steps"]["first"], v["steps"]["n"]), (10, 4))
        hosts = [h for h in v["clock"]["hosts"] if not h["same_clock"]]
        self.assertEqual(len(hosts), 1)
        self.assertLess(abs(hosts[0]["offset_ns"]), 50000) # the truth is 0: one machine
        self.assertLess(abs(hosts[0]["offset_ns"]), hosts[0]["error_ns"])
        return v

    def check_rank_1(self, v):
        w = v["what_if"]
        self.assertEqual(w["by_rank"][0]["rank"], 1)
        self.assertGreater(w["by_rank"][0]["share"], 0.9)
        saved_ms = (w["step_ns"] - w["by_rank"][0]["without_ns"]) / 1e6
        self.assertTrue(26 < saved_ms < 35, saved_ms)

    def test_ddp_loses_30_ms_a_step_to_rank_1(self):
        self.check_rank_1(self.import_mode("ddp"))

    def test_fsdp_loses_as_much_to_rank_1(self):
        self.check_rank_1(self.import_mode("fsdp"))


@unittest.skipUnless(os.path.isdir(os.path.join(DATA, "kineto")), "the published profiles are not beside the checkout")
class Profiles(Folder):
    def test_dlrm_who_comes_last_and_by_how_much(self):
        """One machine, so the true offset of all clocks is 0; the spreads were measured on it."""
        with tarfile.open(os.path.join(DATA, "kineto", "param_dlrm_8rank", "dlrm_kineto.tar.gz")) as tar:
            for m in tar:
                if m.isfile() and m.name.endswith(".json"):
                    self.file(os.path.basename(m.name), tar.extractfile(m).read())
        files = [os.path.join(self.dir, f) for f in sorted(os.listdir(self.dir))]
        self.assertEqual(call("import", *files, "--db", self.db).returncode, 0)
        rows = call("sql", self.db, "SELECT skew_ns / 1000 AS us FROM collective ORDER BY seq").stdout.split()[1:]
        for got, want in zip(rows, (7624, 1101, 168, 125, 223, 534, 584, 885), strict=True):
            self.assertLess(abs(int(got) - want), 8)
        last = call("sql", self.db, "SELECT rank FROM (SELECT seq, rank, max(arrival_ns) FROM collective_rank "
                    "GROUP BY seq) ORDER BY seq").stdout.split()[1:]
        self.assertEqual(last, ["7", "7", "7", "7", "7", "5", "5", "4"])
        for h in self.report()["clock"]["hosts"]:
            self.assertLess(abs(h["offset_ns"]) if not h["same_clock"] else 0, 8000)

    def test_sampled_traces_are_not_matched(self):
        folder = os.path.join(DATA, "kineto", "trace_filter")
        r = call("import", *[os.path.join(folder, f) for f in sorted(os.listdir(folder))], "--db", self.db)
        self.assertEqual(r.returncode, 0)
        v = self.report()
        for i in v["coverage"]["inputs"]:
            self.assertIn("not matched with other ranks'", i["outcome"])
        self.assertIsNone(v["what_if"]["slowdown"])
        self.assertEqual(v["collectives"]["last_arrival"], [])

    def test_every_profile_is_read_or_refused_with_a_sentence(self):
        n = 0
        for folder, _, files in os.walk(os.path.join(DATA, "kineto")):
            for f in files:
                if not f.endswith((".json", ".json.gz")):
                    continue
                n += 1
                db = os.path.join(self.dir, f"{n}.db")
                r = call("import", os.path.join(folder, f), "--db", db, "--json")
                self.assertIn(r.returncode, (0, 3), r.stderr)
                v = json.loads(r.stdout)["inputs"][0]
                self.assertTrue(v["outcome"])
                if r.returncode == 0:
                    self.assertIn(call("report", db).returncode, (0, 1, 4, 5))
        self.assertGreater(n, 20)


if __name__ == "__main__":
    unittest.main()
