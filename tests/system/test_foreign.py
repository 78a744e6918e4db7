#!/usr/bin/env python3
"""Offsets of real traces from their collectives alone.

    test_foreign.py FOREIGN_CLOCK

Eight DLRM traces of one host (true offset 0) with offsets put in, and two traces
that were sampled and must be refused. The traces lie beside the checkout
(../shared); without them the test is skipped.
"""
import decimal
import gzip
import io
import json
import pathlib
import random
import subprocess
import sys
import tarfile
import unittest
import zlib

DATA = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "kineto"
PROGRAM = None
NEEDS_ALL = ("AllReduce", "AllGather", "ReduceScatter")


def read_calls(text):
    """(enter ns, exit ns, kind, proves) of each NCCL kernel, in order. No float
    ever holds an epoch."""
    calls = []
    for event in json.loads(text, parse_float=decimal.Decimal)["traceEvents"]:
        name = event.get("name", "")
        if event.get("ph") != "X" or event.get("cat", "").lower() != "kernel":
            continue
        if "nccl" not in name.lower():
            continue
        start, dur = (int(decimal.Decimal(event[k]) * 1000) for k in ("ts", "dur"))
        kind = zlib.crc32(name.split("(")[0].encode()) + 1
        calls.append((start, start + dur, kind, int(any(n in name for n in NEEDS_ALL))))
    return sorted(calls)


def read_dlrm():
    ranks = {}
    with tarfile.open(DATA / "param_dlrm_8rank" / "dlrm_kineto.tar.gz") as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(".json"):
                text = io.TextIOWrapper(tar.extractfile(member)).read()
                rank = json.loads(text)["distributedInfo"]["rank"]
                ranks[rank] = read_calls(text)
    return [ranks[r] for r in sorted(ranks)]


def read_filter():
    return [read_calls(gzip.open(p, "rt").read())
            for p in sorted((DATA / "trace_filter").glob("*.json.gz"))]


def align(ranks):
    lines = "".join(f"{r} {enter} {leave} {kind} {proves}\n" for r, calls in enumerate(ranks)
                    for enter, leave, kind, proves in calls)
    out = subprocess.run([PROGRAM], input=lines, capture_output=True, text=True, check=True).stdout
    keys = "rank outcome offset lo hi soft drift_known drift_ppm n_matched residual".split()
    return [dict(zip(keys, (float(v) if "." in v else int(v) for v in line.split()[:10])))
            for line in out.splitlines()]


def shifted(ranks, offsets):
    return [[(a - o, b - o, k, p) for a, b, k, p in calls] for calls, o in zip(ranks, offsets)]


@unittest.skipUnless(DATA.is_dir(), f"{DATA} is absent")
class ForeignTraces(unittest.TestCase):
    def test_injected_offsets_come_back_and_drift_is_not_determinable(self):
        ranks = read_dlrm()
        self.assertEqual(len(ranks), 8)
        worst = 0
        for seed in range(40):
            rng = random.Random(seed)
            offsets = [0] + [rng.randint(-50_000_000, 50_000_000) for _ in ranks[1:]]
            for clock in align(shifted(ranks, offsets)):
                self.assertEqual(clock["outcome"], 0, f"seed {seed}: {clock}")
                error = clock["offset"] - offsets[clock["rank"]]
                worst = max(worst, abs(error))
                self.assertLessEqual(abs(error), 10_000, f"seed {seed}: {clock}")
                self.assertFalse(clock["drift_known"])
                self.assertLessEqual(clock["lo"], offsets[clock["rank"]])
                self.assertGreaterEqual(clock["hi"], offsets[clock["rank"]])
        print(f"largest error {worst} ns")

    def test_sampled_traces_are_refused(self):
        ranks = read_filter()
        self.assertEqual(len(ranks), 2)
        for offset in (0, -50_000_000, 50_000_000, 3_600_000_000_000):
            for clock in align(shifted(ranks, [0, offset])):
                self.assertNotEqual(clock["outcome"], 0)

    def test_a_rank_that_lost_a_call_is_refused_alone(self):
        ranks = read_dlrm()
        for rank in range(8):
            for lost in range(1, 7):
                less = list(ranks)
                less[rank] = ranks[rank][:lost] + ranks[rank][lost + 1:]
                clocks = align(less)
                for clock in clocks:
                    if clock["rank"] != rank:
                        self.assertEqual(clock["outcome"], 0, f"{rank} {lost}: {clock}")
                    elif clock["outcome"] == 0:
                        self.fail(f"rank {rank} without call {lost}: {clock}")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    if not DATA.is_dir():
        print(f"skipped: {DATA} is absent")
        sys.exit(77)
    unittest.main()
