#!/usr/bin/env python3
"""Timelines of pipeline stages (MegatronApp, Chrome traces of B and E) and training logs of Megatron and DeepSpeed
through `syncline import`: generated pipelines whose answer is known, and the published ones.

The published files lie beside the checkout (../shared/data); without them those tests are skipped."""
import gzip
import json
import os
import random
import re
import statistics
import subprocess
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

    def take(self, content, name="t.json", status=0):
        """Imports it; returns the outcome of the file."""
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else json.dumps(content).encode())
        return self.take_file(path, status)

    def take_file(self, path, status=0):
        if os.path.exists(self.db):
            os.unlink(self.db)
        r = call("import", path, "--db", self.db, "--json")
        self.assertEqual((r.returncode, r.stderr), (status, r.stderr if status else ""))
        return json.loads(r.stdout)["inputs"][0]

    def report(self):
        r = call("report", self.db, "--json")
        self.assertIn(r.returncode, (0, 1, 4, 5), r.stderr)
        v = json.loads(r.stdout)
        with open(os.path.join(ROOT, "docs", "report.schema.json"), encoding="utf-8") as f:
            self.assertEqual(json_schema.problems(v, json.load(f)), [])
        return v

    def verdicts(self):
        return [(v["class"], v["culprit"]["stage"]) for v in self.report()["verdicts"] if v["severity"] != "notice"]

    def rows(self, sql):
        r = call("sql", self.db, sql, "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        return [json.loads(line) for line in r.stdout.splitlines()] if not r.stdout.startswith("[") else json.loads(r.stdout)


# ---- pipelines that are computed ----

def order(p, m, v, stage):
    """One forward, one backward, with v chunks a stage, as Megatron schedules them."""
    groups = [range(g, min(g + p, m)) for g in range(0, m, p)]
    forward = [("forward", k, c) for g in groups for c in range(v) for k in g]
    backward = [("backward", k, c) for g in groups for c in reversed(range(v)) for k in g]
    warm = min(len(forward), (p - stage - 1) * (2 if v > 1 else 1) + (v - 1) * p)
    out = forward[:warm]
    for i in range(len(forward) - warm):
        out += [forward[warm + i], backward[i]]
    return out + backward[len(forward) - warm:]


def schedule(p, m, forward_us, backward_us, v=1, message_us=20, start=0):
    """(name, stage, micro, chunk, begin, end) of one step."""
    left = [order(p, m, v, s) for s in range(p)]
    at, done = [start] * p, {}
    while any(left):
        moved = False
        for s in range(p):
            while left[s]:
                name, k, c = left[s][0]
                if name == "forward":
                    before = ("forward", s - 1, k, c) if s else ("forward", p - 1, k, c - 1) if c else None
                elif s < p - 1:
                    before = ("backward", s + 1, k, c)
                else:
                    before = ("backward", 0, k, c + 1) if c < v - 1 else ("forward", s, k, c)
                if before and before not in done:
                    break
                own = before and before[1] == s
                begin = max(at[s], done[before] + (0 if own else message_us) if before else start)
                at[s] = begin + (forward_us if name == "forward" else backward_us)(s, c)
                done[name, s, k, c] = at[s]
                left[s].pop(0)
                moved = True
                yield name, s, k, c, begin, at[s]
        assert moved, "the schedule waits for itself"


def timeline(p, m, forward_us, backward_us, v=1, steps=3, args=True, seed=1):
    """As MegatronApp aggregates it: pid = stage, sorted by time."""
    rnd, events, t = random.Random(seed), [], 1000
    for step in range(steps):
        near = {}

        def vary(fn, s, c):
            return int(fn(s, c) * rnd.uniform(0.99, 1.01))
        ops = list(schedule(p, m, lambda s, c: vary(forward_us, s, c), lambda s, c: vary(backward_us, s, c), v, start=t + 100))
        for name, s, k, c, begin, end in ops:
            who = {"pid": s, "tid": 0, "name": name}
            more = {"microbatch": k, "model_chunk": c, "pp_rank": s} if args else {}
            events.append({**who, "ph": "B", "ts": begin, "args": {"iteration": step}})
            events.append({**who, "ph": "E", "ts": end, "args": {"iteration": step, **more}})
            near[s] = max(near.get(s, 0), end)
        last = max(near.values()) + 500
        for s in range(p):
            for name, ts in (("iteration begin", t), ("reduce", near[s]), ("iteration end", last)):
                events.append({"pid": s, "tid": 0, "name": name, "ph": "i", "ts": ts, "args": {"iteration": step}})
        t = last + 50
    return sorted(events, key=lambda e: (e["ts"], {"E": 0, "i": 1, "B": 2}[e["ph"]]))


def even(us):
    return lambda s, c: us


def heavy(stage, us, more_us, chunk=None):
    return lambda s, c: more_us if s == stage and chunk in (None, c) else us


class Timelines(Folder):
    def test_an_even_pipeline_that_is_fed_little_is_a_bubble(self):
        for p, m in ((4, 4), (8, 8), (3, 3), (2, 2)):
            with self.subTest(p=p, m=m):
                v = self.take(timeline(p, m, even(2000), even(4000)))
                self.assertEqual((v["format"], v["outcome"]), ("MegatronApp timeline", "ok"))
                self.assertEqual(self.verdicts(), [("slow.pipeline_bubble", None)])

    def test_an_even_pipeline_that_is_fed_well_is_healthy(self):
        self.take(timeline(4, 32, even(2000), even(4000)))
        self.assertEqual(self.verdicts(), [])

    def test_a_stage_with_more_work_is_named_whichever_it_is(self):
        for p, m, stage in ((4, 32, 3), (4, 32, 0), (6, 24, 2), (3, 12, 0), (2, 16, 1)):
            with self.subTest(p=p, stage=stage):
                self.take(timeline(p, m, heavy(stage, 2000, 3400), heavy(stage, 4000, 6400)))
                self.assertEqual(self.verdicts(), [("slow.stage_imbalance", stage)])

    def test_interleaved_stages(self):
        self.take(timeline(4, 8, even(1000), even(2000), v=2))
        self.assertNotIn("slow.stage_imbalance", [c for c, _ in self.verdicts()])
        # Only the last chunk of the last stage has the loss.
        self.take(timeline(4, 8, heavy(3, 1000, 6000, 3), heavy(3, 2000, 7000, 3), v=4))
        self.assertEqual(self.verdicts(), [("slow.stage_imbalance", 3)])
        self.take(timeline(4, 16, heavy(0, 1000, 2200), heavy(0, 2000, 4200), v=2))
        self.assertEqual(self.verdicts(), [("slow.stage_imbalance", 0)])

    def test_sums_and_idle_time_of_each_stage(self):
        events = timeline(4, 8, heavy(3, 2000, 3000), even(4000), steps=2)
        self.take(events)
        rows = self.rows("SELECT * FROM timeline_stage ORDER BY step, stage")
        self.assertEqual(len(rows), 8)
        for row in rows:
            mine = [e for e in events if e["pid"] == row["stage"] and e["args"]["iteration"] == row["step"]]
            sums = {}
            for e in mine:
                if e["ph"] in "BE":
                    sums[e["name"]] = sums.get(e["name"], 0) + (e["ts"] if e["ph"] == "E" else -e["ts"])
            step = [e for e in events if e["args"]["iteration"] == row["step"]]
            span = max(e["ts"] for e in step if e["ph"] == "E") - min(e["ts"] for e in step)
            self.assertEqual((row["n_forward"], row["n_backward"]), (8, 8))
            self.assertEqual((row["forward_ns"], row["backward_ns"], row["span_ns"]),
                             (1000 * sums["forward"], 1000 * sums["backward"], 1000 * span))
            self.assertAlmostEqual(row["idle_ratio"], 1 - (sums["forward"] + sums["backward"]) / span, places=9)
        stages = self.report()["pipeline"]["stages"]
        self.assertEqual([(s["stage"], s["steps"], s["forwards"]) for s in stages], [(k, 2, 16) for k in range(4)])
        self.assertIn("Pipeline", call("report", self.db).stdout)

    def test_spans_as_one_event_with_ranks_in_their_arguments(self):
        """The newer form: X, args dp_rk, pp_rk, tp_rk and the global rank."""
        events = []
        for dp in (0, 1):
            for name, s, k, c, begin, end in schedule(2, 8, heavy(1, 2000, 3600), heavy(1, 4000, 7000)):
                events.append({"ph": "X", "name": name, "pid": 2 * dp + s, "tid": 0, "ts": begin, "dur": end - begin,
                               "args": {"iteration": 4, "g_rk": 2 * dp + s, "dp_rk": dp, "pp_rk": s, "tp_rk": 0, "microbatch": k}})
        v = self.take(events)
        self.assertEqual((v["format"], v["outcome"]), ("MegatronApp timeline", "ok"))
        self.assertEqual(self.verdicts(), [("slow.stage_imbalance", 1)])
        self.assertIn("Ranks 1 and 3", self.report()["verdicts"][0]["culprit"]["detail"])

    def test_processes_that_do_not_say_their_stage(self):
        v = self.take(timeline(4, 16, heavy(2, 2000, 3400), heavy(2, 4000, 6800), args=False))
        self.assertIn("its processes are taken for the stages", v["outcome"])
        self.assertEqual(self.verdicts(), [("slow.stage_imbalance", 2)])

    def test_replicas_are_no_pipeline(self):
        events = []
        for rank in range(4):
            for step in range(4):
                t = 1000 + 20000 * step
                for name, at, dur in (("forward", 0, 3000 + 1000 * (rank == 3)), ("backward", 5000, 6000 + 2000 * (rank == 3))):
                    events += [{"ph": "B", "name": name, "pid": rank, "tid": 1, "ts": t + at, "args": {"iteration": step}},
                               {"ph": "E", "name": name, "pid": rank, "tid": 1, "ts": t + at + dur}]
        v = self.take(events)
        self.assertEqual(v["format"], "Chrome trace of spans")
        self.assertNotIn("slow.stage_imbalance", [c for c, _ in self.verdicts()])
        self.assertNotIn("slow.pipeline_bubble", [c for c, _ in self.verdicts()])
        self.assertEqual({r["stage"] for r in self.report()["pipeline"]["stages"]}, {None})

    def test_clocks_that_differ_are_said_and_nothing_is_concluded(self):
        events = timeline(4, 16, heavy(3, 2000, 3400), heavy(3, 4000, 6800))
        for e in events:
            e["ts"] += 60000 * (e["pid"] == 1)
        v = self.take(sorted(events, key=lambda e: e["ts"]))
        self.assertIn("its clocks differ", v["outcome"])
        self.assertEqual([c for c, _ in self.verdicts() if c != "slow.fixed_rank"], [])

    def test_nested_and_unmatched_events_and_the_steps_around_them(self):
        """Any Chrome trace: an object, threads, spans named after their step."""
        events = [{"ph": "E", "name": "lost", "pid": 7, "tid": 1, "ts": 5}]
        for step in range(3):
            t = 100 + 1000 * step
            for ph, name, at in (("B", f"iteration {step}", 0), ("B", "load", 10), ("B", "read", 20), ("E", "read", 30),
                                 ("B", "never ends", 40), ("E", "load", 100), ("B", "compute", 100), ("E", None, 900),
                                 ("E", f"iteration {step}", 950)):
                events.append({"ph": ph, "pid": 7, "tid": 1, "ts": t + at, **({"name": name} if name else {})})
            events.append({"ph": "X", "name": "beside", "pid": 7, "tid": 2, "ts": t + 50, "dur": 100})
        events.append({"ph": "B", "name": "open", "pid": 7, "tid": 1, "ts": 9000})
        v = self.take({"displayTimeUnit": "ms", "traceEvents": events})
        self.assertEqual(v["format"], "Chrome trace of spans")
        self.assertIn("4 begins have no end", v["outcome"])
        self.assertIn("1 ends have no begin", v["outcome"])
        report = self.report()
        self.assertEqual((report["steps"]["n"], report["steps"]["first"], report["steps"]["last"]), (3, 0, 2))
        self.assertEqual([r["rank"] for r in report["ranks"]], [7])
        # Step by step: 3 loads, reads, computes and those beside.
        self.assertEqual(v["events"], 12)

    def test_a_trace_without_steps_says_so(self):
        v = self.take([{"ph": "B", "name": "a", "pid": 0, "tid": 0, "ts": 1}, {"ph": "E", "name": "a", "pid": 0, "tid": 0, "ts": 9}])
        self.assertIn("it names no steps", v["outcome"])

    def test_others_keep_their_formats(self):
        """A profiler's object with a B in it, and a StragglerAnalysis list, are not taken."""
        kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 5, "args": {"stream": 7, "correlation": 1}}
        launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"correlation": 1}}
        b = {"ph": "B", "name": "a", "pid": 0, "tid": 0, "ts": 1}
        v = self.take({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [b, launch, kernel]})
        self.assertEqual(v["format"], "Kineto trace")
        name = {"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "PP rank 0, TP rank 0, compute"}}
        op = {"ph": "X", "name": "forward-compute", "pid": 0, "tid": 0, "ts": 1, "dur": 5, "args": {"step": 1, "mb_id": 0}}
        self.assertEqual(self.take([op, name])["format"], "StragglerAnalysis timeline")

    def test_a_bad_timeline_is_refused_with_a_sentence(self):
        good = json.dumps(timeline(2, 4, even(100), even(200), steps=1)).encode()
        for bad in (good[:len(good) // 2] + b"{{", b'[{"ph": "B", "ts": ', b'[{"ph": "B", "name": "a", "pid": 0, "ts": -5}]',
                    b'[{"ph": "B", "name": "a", "pid": 0, "ts": 1e30}]'):
            v = self.take(bad, status=3)
            self.assertFalse(v["ok"])
            self.assertTrue(v["outcome"])


# ---- logs ----

def log_lines(p, m, forward, backward, optimizer=50.0, n=12, interval=10, noise=0.01, shape="last", layout="arguments", skipped=(10, 8),
              waits=True, seed=2, stages=None):
    """A log of a job with these times (ms) of one micro-batch on the last stage, as theory has it."""
    rnd = random.Random(seed)
    out = ["+ echo start", "time (ms) | load-checkpoint: 0.46"]
    if layout == "arguments":
        out += ["node1: using world size: %d, data-parallel-size: 1, tensor-model-parallel size: 2, pipeline-model-parallel size: %d " % (2 * p, p),
                "------------------------ arguments ------------------------"]
        out += [f"  {k} {'.' * (48 - len(k))} {v}" for k, v in
                (("data_parallel_size", 1), ("global_batch_size", m), ("log_interval", interval), ("micro_batch_size", 1),
                 ("pipeline_model_parallel_size", p), ("tensor_model_parallel_size", 2),
                 ("transformer_pipeline_model_parallel_size", 99), ("virtual_pipeline_model_parallel_size", None),
                 ("world_size", 2 * p))]
        out += [f"setting number of micro-batches to constant {m}"]
    elif layout == "command":
        out += [f"cmd = python pretrain.py --tensor-model-parallel-size '2' --pipeline-model-parallel-size '{p}' "
                f"--micro-batch-size '1' --global-batch-size '{m}'", f"setting number of microbatches to constant {m}"]
    for i in range(n):
        k = rnd.uniform(1 - noise, 1 + noise) * (1.5 if i == 0 else 1)
        f, b = k * forward, k * backward
        step = (m + p - 1) * (f + b) + optimizer if stages is None else k * stages
        scale = 2.0 ** (23 - i)
        skip = skipped[i] if i < len(skipped) else 0
        out.append(f" iteration {(i + 1) * interval:8d}/    1000 | consumed samples: {(i + 1) * interval * m:12d} | elapsed time per iteration (ms): "
                   f"{step:.1f} | learning rate: 1.500E-04 | global batch size: {m:5d} | lm loss: 7.8E+00 | loss scale: {scale:.1f} | "
                   f"grad norm: 5.341 | number of skipped iterations: {skip:3d} | number of nan iterations:   0 |")
        timers = {"forward-compute": m * f, "backward-compute": m * b, "optimizer": optimizer, "batch-generator": 2.5}
        if waits:
            timers.update({"forward-recv": (p - 1) * f, "backward-embedding-all-reduce": (p - 1) * b})
        if shape == "last":
            out.append("time (ms) | " + " | ".join(f"{a}: {v:.2f}" for a, v in timers.items()))
        elif shape == "minmax":
            out.append("(min, max) time across ranks (ms):")
            out += [f"    {(a + ' ').ljust(48, '.')}: ({0.99 * v:.2f}, {v:.2f})" for a, v in timers.items()]
        elif shape == "max":
            out.append("max time across ranks (ms):")
            out += [f"    {(a + ' ').ljust(48, '.')}: {v:.2f}" for a, v in timers.items()]
        elif shape == "all":
            out.append("times across ranks (ms):")
            for a, v in timers.items():
                out += [f"  {a}:"] + [f"     rank {r:2d}: {v:.2f}" for r in range(2)]
    return ("\n".join(out) + "\n").encode()


class Logs(Folder):
    def pipeline(self):
        logs = self.report()["pipeline"]["logs"]
        self.assertEqual(len(logs), 1)
        return logs[0]

    def test_a_log_of_a_pipeline_that_is_fed_little_is_a_bubble(self):
        for p, m, layout in ((4, 4, "arguments"), (8, 8, "command"), (16, 4, "arguments")):
            with self.subTest(p=p, m=m):
                v = self.take(log_lines(p, m, 40, 100, layout=layout), "job.log")
                self.assertEqual((v["format"], v["outcome"], v["events"]), ("Megatron log", "ok", 12))
                log = self.pipeline()
                self.assertEqual((log["stages"], log["micro_batches"], log["tp"], log["iterations"], log["lines"]), (p, m, 2, 12, 10))
                for key, want in (("receive_wait_theory_ms", (p - 1) * 40), ("embedding_theory_ms", (p - 1) * 100),
                                  ("step_theory_ms", (m + p - 1) * 140 + 50), ("step_ms", (m + p - 1) * 140 + 50)):
                    self.assertAlmostEqual(log[key] / want, 1, delta=0.011, msg=key)
                self.assertAlmostEqual(log["idle_theory"], (p - 1) / (m + p - 1), places=9)
                found = self.report()["verdicts"]
                self.assertEqual([x["class"] for x in found], ["slow.pipeline_bubble"])
                self.assertIn("embedding looks slow", found[0]["sentence"])
                self.assertIn("only the last stage's timers", found[0]["sentence"])

    def test_a_well_fed_pipeline_and_one_without_a_pipeline_are_healthy(self):
        self.take(log_lines(4, 64, 40, 100), "job.log")
        self.assertEqual(self.verdicts(), [])
        self.assertAlmostEqual(self.pipeline()["idle_theory"], 3 / 67, places=9)
        self.take(log_lines(1, 8, 40, 100), "job.log")
        self.assertEqual(self.verdicts(), [])

    def test_a_step_that_the_schedule_does_not_explain_is_no_bubble(self):
        """Another stage is slower than the last, or the network: the step is longer than theory."""
        self.take(log_lines(4, 4, 40, 100, stages=1800), "job.log")
        self.assertEqual(self.verdicts(), [])

    def test_without_the_number_of_stages_there_is_no_theory_whatever_the_name(self):
        v = self.take(log_lines(4, 4, 40, 100, layout=None), "gpt_pp4_tp2.log")
        self.assertIn("does not print how many pipeline stages", v["outcome"])
        log = self.pipeline()
        self.assertEqual((log["stages"], log["step_theory_ms"], log["idle_theory"]), (None, None, None))
        self.assertEqual(self.verdicts(), [])

    def test_timers_over_ranks(self):
        for shape in ("minmax", "max"):
            with self.subTest(shape=shape):
                self.take(log_lines(4, 4, 40, 100, shape=shape), "job.log")
                self.assertEqual(self.verdicts(), [("slow.pipeline_bubble", None)])
                row = self.rows("SELECT value_ms, least_ms FROM megatron_timer WHERE name = 'optimizer' LIMIT 1")[0]
                self.assertEqual(row, {"value_ms": 50.0, "least_ms": 49.5 if shape == "minmax" else None})
        self.assertEqual(self.rows("SELECT count(*) AS n FROM megatron_timer WHERE step IS NOT NULL")[0]["n"], 12 * 6)

    def test_timers_of_each_rank(self):
        self.take(log_lines(4, 4, 40, 100, shape="all"), "job.log")
        self.assertEqual(self.rows("SELECT rank, count(*) AS n FROM megatron_timer WHERE step IS NOT NULL GROUP BY rank ORDER BY rank"),
                         [{"rank": 0, "n": 72}, {"rank": 1, "n": 72}])

    def test_skipped_steps_at_the_start_are_nothing(self):
        self.take(log_lines(4, 64, 40, 100, skipped=(10, 10, 10, 9, 7)), "job.log")
        self.assertEqual(self.report()["verdicts"], [])
        log = self.pipeline()
        self.assertEqual((log["skipped"], log["lines"]), (46, 7))

    def test_what_stands_before_a_line_and_other_writers(self):
        lines = [b"10.0.0.1:  [2024-05-01 10:00:00] iteration       %d/      50 | consumed samples: 8 | elapsed time per iteration (ms): %d.5 | "
                 b"throughput per GPU (TFLOP/s/GPU): 50.0 | loss scale: 1.0 | number of skipped iterations:   0 |\n" % (i, 100 + i)
                 for i in range(1, 6)]
        self.assertEqual(self.take(b"noise\n" + b"".join(lines), "a.log")["events"], 5)
        self.assertEqual([r["elapsed_ms"] for r in self.rows("SELECT elapsed_ms FROM megatron_step ORDER BY step")],
                         [101.5, 102.5, 103.5, 104.5, 105.5])
        lines = [b"[INFO][training_log:661] -  iteration=       %d/  635782 | consumed_samples=         768 | elapsed_time_per_iteration_ms=29570.0 | "
                 b"global_batch_size=768 | lm loss=11.167250 | loss_scale=1.0 | number_of_skipped_iterations=  0 |\n" % i for i in (1, 2)]
        self.take(b"".join(lines), "b.log")
        self.assertEqual(self.rows("SELECT step, elapsed_ms, loss, global_batch_size FROM megatron_step"),
                         [{"step": i, "elapsed_ms": 29570.0, "loss": 11.16725, "global_batch_size": 768.0} for i in (1, 2)])
        lines = [b"[2023-01-01 00:00:00,000] [INFO] steps: %d loss: 1.5000 iter time (s): 0.250 samples/sec: 3.1\n"
                 b"[INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd_microstep: 10.5 | bwd_microstep: 20.5\n" % i for i in (10, 20)]
        self.take(b"".join(lines), "c.log")
        self.assertEqual(self.rows("SELECT step, elapsed_ms, loss FROM megatron_step"),
                         [{"step": i, "elapsed_ms": 250.0, "loss": 1.5} for i in (10, 20)])
        self.assertEqual(self.rows("SELECT count(*) AS n FROM megatron_timer WHERE name = 'fwd_microstep'"), [{"n": 2}])

    def test_a_text_that_is_no_log_is_refused(self):
        for text in (b"hello\nworld\n", b"iteration 1/2 | elapsed time per iteration (ms): nan |\n", b"[x] y\n"):
            v = self.take(text, "x.log", status=3)
            self.assertIsNone(v["format"])
            self.assertTrue(v["outcome"])

    def test_numbers_that_cannot_be_are_left_out(self):
        self.take(log_lines(4, 4, 40, 100) + b"time (ms) | forward-compute: 1e400 | backward-compute: nan | x: -5 | y: 7\n", "job.log")
        self.assertEqual([r["name"] for r in self.rows("SELECT name FROM megatron_timer WHERE name IN ('x', 'y')")], ["y"])
        self.assertEqual(self.rows("SELECT count(*) AS n FROM megatron_timer WHERE name = 'forward-compute'"), [{"n": 12}])


@unittest.skipUnless(os.path.isdir(os.path.join(DATA, "megatronapp")), "the published timelines are not beside the checkout")
class PublishedTimelines(Folder):
    def test_stage_imbalance_and_the_sums(self):
        for suffix, n_steps in (("-iter10", 1), ("", 20)):
            path = os.path.join(DATA, "megatronapp", f"data-1-pipeline-4-tensor-1-pp-aggregated{suffix}.json.gz")
            v = self.take_file(path)
            self.assertEqual((v["format"], v["outcome"], v["events"]), ("MegatronApp timeline", "ok", 256 * n_steps))
            self.assertEqual(self.verdicts(), [("slow.stage_imbalance", 3)])
            report = self.report()
            self.assertIn("Rank 3", report["verdicts"][0]["culprit"]["detail"])
            self.assertEqual(report["steps"]["n"], n_steps)
            rows = self.rows("SELECT * FROM timeline_stage WHERE step = 10 ORDER BY stage")
            self.assertEqual([r["n_forward"] for r in rows], [32] * 4)
            for row in rows:
                last = row["stage"] == 3
                self.assertEqual(round(row["span_ns"] / 1e6), 677)
                self.assertEqual(106 <= row["forward_ns"] / 1e6 <= 114, not last)
                self.assertEqual(215.5 <= row["backward_ns"] / 1e6 <= 222.5, not last)
                self.assertEqual(0.50 <= row["idle_ratio"] <= 0.53, not last)
            self.assertEqual((round(rows[3]["forward_ns"] / 1e6), round(rows[3]["backward_ns"] / 1e6),
                              round(100 * rows[3]["idle_ratio"])), (222, 315, 21))


@unittest.skipUnless(os.path.isdir(os.path.join(DATA, "megatron_logs")), "the published logs are not beside the checkout")
class PublishedLogs(Folder):
    #       step    fwd    bwd    recv  theory   emb   theory  opt   step theory  idle  theory
    truth = {4: (1380.6, 176.0, 514.9, 126.4, 132.0, 418.7, 386.2, 115.2, 1324, 41.6, 42.9),
             8: (1618.3, 144.2, 396.8, 236.3, 252.3, 726.2, 694.4, 89.1, 1577, 61.1, 63.6),
             16: (2740.1, 147.9, 413.5, 508.9, 554.6, 1544.5, 1550.6, 95.4, 2762, 76.0, 78.9)}
    keys = ("step_ms", "forward_ms", "backward_ms", "receive_wait_ms", "receive_wait_theory_ms", "embedding_ms",
            "embedding_theory_ms", "optimizer_ms", "step_theory_ms", "idle", "idle_theory")

    def test_pipelines_are_bubbles_with_the_published_numbers(self):
        folder = os.path.join(DATA, "megatron_logs")
        for p, want in self.truth.items():
            name = next(n for n in os.listdir(folder) if f"_pp{p}-" in n)
            v = self.take_file(os.path.join(folder, name))
            self.assertEqual((v["format"], v["outcome"]), ("Megatron log", "ok"))
            report = self.report()
            log = report["pipeline"]["logs"][0]
            self.assertEqual((log["stages"], log["micro_batches"], log["tp"], log["dp"]), (p, 4, 4, 1))
            for key, value in zip(self.keys, want):
                got = 100 * log[key] if key.startswith("idle") else log[key]
                self.assertAlmostEqual(got / value, 1, delta=0.0015, msg=f"p={p} {key}")
            # The ten skipped steps of the start, and slow all-reduces: nothing is said of them.
            self.assertEqual([x["class"] for x in report["verdicts"]], ["slow.pipeline_bubble"])

    def test_every_timer_and_step_is_in_the_tables(self):
        folder = os.path.join(DATA, "megatron_logs")
        for name in os.listdir(folder):
            self.take_file(os.path.join(folder, name))
            steps, timers = [], 0
            with gzip.open(os.path.join(folder, name), "rt", errors="replace") as f:
                for line in f:
                    if "elapsed time per iteration (ms):" in line:
                        steps.append(float(line.split("elapsed time per iteration (ms):")[1].split("|")[0]))
                    elif line.startswith("time (ms) |"):
                        timers += line.count(": ")
                    timers += bool(re.search(r" \.{3,}: \([0-9.]+, [0-9.]+\)$", line.rstrip()))
            rows = self.rows("SELECT elapsed_ms FROM megatron_step ORDER BY step")
            self.assertEqual([r["elapsed_ms"] for r in rows], steps)
            self.assertEqual(self.rows("SELECT count(*) AS n FROM megatron_timer")[0]["n"], timers)
            self.assertGreater(statistics.median(steps), 0)

    def test_superbench(self):
        self.take_file(os.path.join(DATA, "megatron_logs", "superbench_megatron_deepspeed.log.gz"))
        log = self.report()["pipeline"]["logs"][0]
        self.assertEqual((log["stages"], log["micro_batches"], log["tp"], log["dp"], log["iterations"]), (1, 64, 1, 16, 5))
        self.assertEqual(self.verdicts(), [])


if __name__ == "__main__":
    unittest.main()
