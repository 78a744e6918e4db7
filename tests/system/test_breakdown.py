"""Where the time of a rank's steps went, against what its events say.

Jobs at random are played; then each instant of each device is given to what ran there, from the raw events and by
plain arithmetic on intervals. The rows of rank_step must say the same, add up, and leave no time out between steps."""
import json
import os
import random
import sqlite3
import subprocess
import tempfile
import unittest

import tale

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SYNCLINE = os.path.join(os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b"))), "syncline")
LAUNCH_GAP_NS = 20_000  # shorter idle times are given to no host work


def job(rng, sync):
    """Ranks with unequal kernels, calls that overlap, messages and host work; the host may run far ahead."""
    world = rng.choice((2, 4))
    half = {"a": "0-%d" % (world // 2 - 1), "b": "%d-%d" % (world // 2, world - 1)}
    plan = []
    for _ in range(rng.randrange(2, 5)):
        plan.append(rng.choice(("dp", "half", "p2p", "late wait", "work", "nothing")))
    prog = {}
    for rank in range(world):
        mine, steps = "a" if rank < world // 2 else "b", []
        for step in range(6):
            ops = [["step", step]]
            for what in plan:
                ops.append(["k", rng.uniform(0.1, 4), "fwd"])
                if what == "dp":
                    ops += [["coll", "dp", "allreduce", 1000, "f32", 0.7], ["wait", "dp"]]
                elif what == "half":
                    ops += [["coll", mine, "allgather", 1000, "f32", 0.4], ["wait", mine]]
                elif what == "p2p":
                    ops += [["p2p", [["s", rank ^ 1, 64], ["r", rank ^ 1, 64]], 0.2]]
                elif what == "late wait":
                    ops += [["coll", "dp", "allreduce", 1000, "f32", 2.5], ["k", rng.uniform(0.1, 1.5), "bwd"], ["wait", "dp"]]
                elif what == "work":
                    ops += [["sync"]] * rng.randrange(2) + [["cpu", rng.uniform(0.1, 6), "augment"]]
            ops.append(["k", rng.uniform(0.1, 1), "opt"])
            steps += ops + ([["sync"]] if sync else [])
        prog[str(rank)] = steps + [["sync"]]
    return {"id": "random", "world": world, "pg": half, "prog": prog, "expect": {"verdict": None}}


def overlap(a, b):
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def expected(t, rank, last_of):
    """(compute, exposed, wait, idle, host) by step, and where each ends."""
    r = t.ranks[rank]
    kernels, calls = [], []
    for number, (_, _, _, step) in r.launches.items():
        begin, end = r.device[number]
        (calls if number in r.calls else kernels).append((begin, end, step, r.calls.get(number)))
    cuts = sorted({x for op in kernels + calls for x in op[:2]})
    spent = {s: dict(compute=0, exposed=0, wait=0) for s, _, _ in r.steps}
    idle = []
    for begin, end in zip(cuts, cuts[1:]):
        running = [k for k in kernels if k[0] <= begin and k[1] >= end]
        under_way = sorted(c for c in calls if c[0] <= begin and c[1] >= end)
        if running:
            spent[running[0][2]]["compute"] += end - begin
        elif under_way:
            _, _, step, names = under_way[0]
            spent[step]["exposed"] += end - begin
            last = last_of.get(names[0][1:])
            if last:
                spent[step]["wait"] += overlap((begin, end), (begin, last))
        else:
            idle.append((begin, end))
    at, out = None, {}
    for step, begin, end in r.steps:
        at = begin if at is None else max(at, begin)
        done = [k[1] for k in kernels if k[2] == step]
        later = min((k[0] for k in kernels if k[2] > step), default=float("inf"))
        done += [min(c[1], max([later] + done)) for c in calls if c[2] == step]
        to = max([end, at] + done)
        v = spent[step]
        gaps = [(max(a, at), min(b, to)) for a, b in idle + [(at, cuts[0]), (max(done, default=at), to)] if min(b, to) > max(a, at)]
        v["dur"], v["begin"] = to - at, at
        v["idle"] = v["dur"] - v["compute"] - v["exposed"]
        v["host"] = sum(overlap(g, w[1:]) for g in set(gaps) for w in r.work)
        out[step], at = v, to
    return out


class Breakdown(unittest.TestCase):
    def check(self, seed, sync):
        spec = job(random.Random(seed), sync)
        with tempfile.TemporaryDirectory() as folder:
            path, db = os.path.join(folder, "spec.json"), os.path.join(folder, "c.db")
            with open(path, "w") as f:
                json.dump(spec, f)
            subprocess.run([SYNCLINE, "sim", path, "--db", db], check=True, capture_output=True, timeout=60)
            t = tale.Tale(db)
            last_of = {}
            for r in t.ranks.values():
                for number, names in r.calls.items():
                    for _, group, seq in names:
                        if "p2p" not in group:
                            last_of[group, seq] = max(last_of.get((group, seq), 0), r.device[number][0])
            rows = sqlite3.connect(db).execute(
                "SELECT rank, step, begin_ns, dur_ns, compute_ns, exposed_comm_ns, wait_ns, wait_err_ns, idle_ns, host_ns, self_ns, coverage "
                "FROM rank_step ORDER BY rank, step").fetchall()
            t.close()
        self.assertEqual(len(rows), spec["world"] * 6)
        messages = any(op[0] == "p2p" for op in spec["prog"]["0"])
        zero = rows[0][2] - t.ranks[0].steps[0][1]  # the case's beginning, of rank 0's first step
        for rank in range(spec["world"]):
            want = expected(t, rank, last_of)
            for row in (row for row in rows if row[0] == rank):
                _, step, begin, dur, compute, exposed, wait, wait_err, idle, host, own, coverage = row
                v, where = want[step], f"seed {seed}, rank {rank}, step {step}"
                self.assertEqual((dur, compute, exposed, idle), (v["dur"], v["compute"], v["exposed"], v["idle"]), where)
                self.assertEqual(begin - zero, v["begin"], where)
                self.assertEqual((own, coverage), (compute + idle, 1.0), where)
                self.assertLessEqual(abs(wait - v["wait"]), wait_err if messages else 0, where)
                self.assertLessEqual(host, v["host"], where)
                self.assertLessEqual(v["host"] - host, 20 * LAUNCH_GAP_NS, where)

    def test_host_far_ahead_of_the_device(self):
        for seed in range(40):
            self.check(seed, False)

    def test_host_waits_for_the_device_at_the_end_of_each_step(self):
        for seed in range(100, 130):
            self.check(seed, True)


if __name__ == "__main__":
    unittest.main()
