#!/usr/bin/env python3
"""The list of functions that torch.autograd's profiler exports, and torch.profiler of a build without Kineto.

tests/data/import/autograd_worker*.json are cuts of a recording of two ranks of gloo (torch 1.13): rank 1 slept 30 ms in
each step from the second recorded one on."""
import gzip
import json
import os
import unittest

import test_import as base
import test_kineto

CUTS = [os.path.join(test_kineto.CUTS, f"autograd_worker{r}.json") for r in (0, 1)]


def span(name, ts, dur, tid=1, pid="CPU functions"):
    return {"name": name, "ph": "X", "ts": ts, "dur": dur, "tid": tid, "pid": pid, "args": {}}


def rank(late, ahead, scatter=(0,), steps=8, named=True):
    """Comes late us late to the all-reduce of each step, and leaves it with the others but for scatter."""
    events = [span("aten::zeros", ahead + 1, 5)]
    for i in range(steps):
        t = ahead + 100 + 40000 * i
        end = t + 38000 + scatter[i % len(scatter)]
        if named:
            events.append(span(f"ProfilerStep#{i}", t, 39900))
        events += [span("aten::mm", t + 10, 900), span("AddmmBackward0", t + 20, 100), span("my range", t + 5, 2000),
                   span("c10d::allreduce_", t + 2000 + late, 20),
                   span("gloo:all_reduce", t + 2000 + late, end - t - 2000 - late, 2)]
    return events


class Autograd(test_kineto.Kineto):
    def load(self, *files):
        r = base.call("import", *files, "--db", self.db, "--force", "--json")
        self.assertEqual(r.returncode, 0, r.stderr + r.stdout)
        return json.loads(r.stdout)["inputs"]

    def test_a_recording_says_who_slept(self):
        packed = os.path.join(self.dir, "worker0.json.gz")
        with open(CUTS[0], "rb") as f, gzip.open(packed, "wb") as out:
            out.write(f.read())
        for files in (CUTS, CUTS[::-1], [packed, CUTS[1]]):
            for i in self.load(*files):
                self.assertEqual((i["format"], i["events"]), ("PyTorch autograd profile", 16))
                self.assertNotIn("not matched", i["outcome"])
            self.assertIn("rank 1: it alone", base.call("report", self.db).stdout)
            self.assertEqual(self.blamed(self.report()) - {1}, set())

    def test_ranges_are_told_and_operators_are_none(self):
        self.load(*CUTS)
        names = {v["name"] for v in self.sql("SELECT name FROM profile_annotation WHERE rank = 0")}
        self.assertEqual(names, {"ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2", "DistributedDataParallel.forward",
                                 "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"})

    def test_a_host_leaves_late_and_its_clock_is_its_own(self):
        for who in (0, 1):
            self.take(rank(30000 * (who == 0), 0, (0, 900, 2000)), rank(30000 * (who == 1), 5000000, (700, 0, 1500)),
                      names=["rank0.json", "rank1.json"])
            text = base.call("report", self.db).stdout
            self.assertIn(f"rank {who}: it alone", text)
            self.assertNotIn(f"rank {1 - who}: it alone", text)
            self.assertLessEqual(self.blamed(self.report()), {who})

    def test_nobody_is_late_where_all_come_together(self):
        self.take(rank(0, 0, (0, 900)), rank(0, 70000, (700, 0)), names=["rank0.json", "rank1.json"])
        self.assertEqual(self.blamed(self.report()), set())

    def test_calls_that_end_far_apart_are_no_calls_of_one_another(self):
        said = self.take(rank(0, 0, (0, 30000, 5000, 17000)), rank(0, 0, (25000, 0, 12000, 1000)),
                         names=["rank0.json", "rank1.json"])
        self.assertIn("not matched", said[1])
        self.assertEqual(self.blamed(self.report()), set())

    def test_without_steps_scattered_ends_prove_nothing(self):
        said = self.take(rank(30000, 0, (0, 3000), named=False), rank(0, 0, (2500, 0), named=False),
                         names=["rank0.json", "rank1.json"])
        self.assertIn("not matched", said[1])
        self.assertEqual(self.blamed(self.report()), set())

    def test_times_around_operators_are_no_work_of_a_device(self):
        said = self.take(rank(0, 0) + [span("aten::mm", 500, 900, 0, "CUDA functions")], names=["rank0.json"])
        self.assertIn("no work of a device", said[0])
        self.assertEqual(self.sql("SELECT * FROM profile_breakdown"), [])

    def test_what_is_cut_off_or_empty_is_refused(self):
        text = json.dumps(rank(0, 0)).encode()
        for content, why in ((text[:-1], "does not end"), (text[:len(text) // 2], "JSON"),
                             (json.dumps([span("aten::mm", 1, 2)]).encode(), "no step, range or collective")):
            said = self.take(content, names=["rank0.json"], code=3)
            self.assertIn(why, said[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
