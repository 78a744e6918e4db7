#!/usr/bin/env python3
"""One fault planted in a drawn healthy job (jobs.py): the first verdict must be of its class and name its rank, or there is none.

Names, ranks, sizes, times and layouts are drawn, so nothing can be tuned to them. `faults.py SEED` prints one."""
import json
import random
import sys

import jobs


class Fault:
    def __init__(self, spec, want, noise=0.0):
        self.spec, self.want, self.noise = spec, want, noise


# ---- finding places in a program ----

def marks(ops):
    """Where each step begins."""
    return [i for i, op in enumerate(ops) if op[0] == "step"]


def calls(ops, group="dp"):
    return [i for i, op in enumerate(ops) if op[0] == "coll" and op[1] == group]


def big_calls(ops):
    """Reductions of gradients, by place."""
    return [i for i in calls(ops) if ops[i][2] == "allreduce" and ops[i][3] > 1000]


def from_step(job, rank, step):
    ops = job.ops[rank]
    return range(marks(ops)[step], len(ops))


def faster_or_slower(job, ranks, factor, step):
    for r in ranks:
        for i in from_step(job, r, step):
            op = job.ops[r][i]
            if op[0] == "k":
                job.ops[r][i] = [op[0], round(op[1] * factor, 4), *op[2:]]


def insert(job, rank, at, *ops):
    job.ops[rank][at:at] = ops


def dense(rng, kinds=("ddp", "accumulation"), worlds=(4, 6, 8), n_steps=(40, 60), habits=frozenset(), n_hosts=None):
    """A job with gradient reductions over all ranks."""
    job = jobs.build(rng, rng.choice(kinds), rng.choice(worlds), rng.randint(*n_steps), set(habits), n_hosts)
    job.marked = True
    return job


def some_habits(rng):
    return jobs.draw_habits(rng) - {"end of data", "sums"}


def want(name, ranks=None, **more):
    return {"class": name, "ranks": ranks, **more}


# ---- slow ----

def slow_rank(rng):
    job = dense(rng, habits=some_habits(rng) - {"late start"})
    rank, onset = rng.randrange(job.world), rng.choice([0, 5, 12])
    faster_or_slower(job, [rank], 1 + rng.uniform(0.15, 0.6), onset)
    # A rank that is late by a constant share of its work is slow, whatever makes it so.
    return job, want("slow.fixed_rank", [rank])


def slow_host(rng):
    job = dense(rng, worlds=(8, 12), habits=some_habits(rng) - {"late start"}, n_hosts=rng.choice([3, 4]))
    host = rng.choice(list(job.hosts))
    faster_or_slower(job, job.hosts[host], 1 + rng.uniform(0.2, 0.6), rng.choice([0, 8]))
    return job, want("slow.fixed_host", None, has=[host])


def slow_all(rng):
    job = dense(rng, habits=some_habits(rng))
    faster_or_slower(job, range(job.world), 1 + rng.uniform(0.3, 0.8), rng.randint(12, 20))
    return job, want("slow.global", [])


def slow_stage(rng):
    job = jobs.build(rng, "pipeline", 4, rng.randint(6, 10), set(), 1)
    stage, factor = rng.randrange(len(next(op for op in job.ops[0] if op[0] == "1f1b")[1])), rng.uniform(1.5, 2.2)
    seen = set()
    for ops in job.ops:
        for op in ops:
            if op[0] == "1f1b" and id(op) not in seen:
                seen.add(id(op))
                op[3][stage], op[4][stage] = op[3][stage] * factor, op[4][stage] * factor
    ranks = sorted({op[1][stage] for ops in job.ops for op in ops if op[0] == "1f1b"})
    return job, want("slow.stage_imbalance", ranks, or_ranks=[[]], or_class=["slow.fixed_rank"] if len(ranks) == 1 else [])


def hot_device(rng):
    job = dense(rng, habits=some_habits(rng) - {"late start", "devices"})
    rank, onset = rng.randrange(job.world), rng.randint(8, 15)
    faster_or_slower(job, [rank], 1 + rng.uniform(0.2, 0.5), onset)
    for r in range(job.world):
        for n, at in reversed(list(enumerate(marks(job.ops[r])))):
            hot = r == rank and n >= onset
            insert(job, r, at + 1, ["ev", "dev", "clock", {"sm_mhz": 1200 if hot else 1965, "mem_mhz": 2619,
                                                           "throttle": "thermal" if hot else "none"}],
                   ["ev", "dev", "temperature", {"gpu_c": 91 if hot else 61}])
    return job, want("slow.throttled", [rank])


def pauses_that_move(rng):
    job = dense(rng, worlds=(4, 6, 8), n_steps=(48, 60))
    every = job.world
    for r in range(job.world):
        for n, at in reversed(list(enumerate(marks(job.ops[r])))):
            if n % every == r:
                insert(job, r, at + 1, ["cpu", round(rng.uniform(60, 120), 2), "collect"])
    return job, want("slow.rotating_host_pause", [], or_class=["slow.rotating_cpu_placement"])


def late_input(rng):
    job = dense(rng, habits=some_habits(rng) - {"input", "late start"})
    rank = rng.randrange(job.world)
    for r in range(job.world):
        for at in reversed(marks(job.ops[r])):
            ms = rng.uniform(70, 120) if r == rank else rng.uniform(0.5, 1)
            insert(job, r, at + 1, ["cpu", round(ms, 3), "next"], ["ev", "loader", "batch", {"size": 16, "ms": round(ms, 3)}])
    return job, want("data.late_input", [rank])


def uneven_batch(rng):
    job = dense(rng, kinds=("accumulation",), habits=some_habits(rng) - {"late start", "input"})
    rank, factor = rng.randrange(job.world), rng.uniform(1.3, 1.8)
    faster_or_slower(job, [rank], factor, 0)
    for r in range(job.world):
        for at in reversed(marks(job.ops[r])):
            n = 24
            insert(job, r, at + 1, ["gauge", "batch", round(n * factor) if r == rank else n])
    return job, want("data.uneven_batch", [rank])


# ---- calls that differ ----

def change_call(rng, change, name, kinds=("ddp", "accumulation"), **more):
    job = dense(rng, kinds=kinds, n_steps=(5, 12), habits=some_habits(rng))
    rank, at_step = rng.randrange(job.world), rng.randint(2, 4)
    places = [i for i in big_calls(job.ops[rank]) if i > marks(job.ops[rank])[at_step]]
    change(rng, job, rank, places[0])
    return job, want(name, [rank], **more)


def other_size(rng, job, rank, at):
    op = list(job.ops[rank][at])
    op[3] = op[3] + rng.choice([-2, 7, 1024, -op[3] // 2])
    job.ops[rank][at] = op


def other_dtype(rng, job, rank, at):
    op = list(job.ops[rank][at])
    op[4] = "bf16" if op[4] != "bf16" else "f32"
    job.ops[rank][at] = op


def other_op(rng, job, rank, at):
    op = list(job.ops[rank][at])
    op[2] = rng.choice(["reduce_scatter", "all_gather"])
    job.ops[rank][at] = op


def other_name(rng, job, rank, at):
    n = calls(job.ops[rank]).index(at)
    for r in range(job.world):
        i = calls(job.ops[r])[n]
        op = job.ops[r][i]
        options = dict(op[6]) if len(op) > 6 else {}
        options["name"] = "encoder.weight" if r == rank else "decoder.weight"
        job.ops[r][i] = op[:6] + [options]


def one_more(rng, job, rank, at):
    insert(job, rank, at, ["coll", "dp", "allreduce", rng.randint(1, 5), "f32", 0.02])


def mismatch_size(rng):
    return change_call(rng, other_size, "mismatch.size", or_class=["mismatch.size_from_skipped_module"])


def mismatch_dtype(rng):
    return change_call(rng, other_dtype, "mismatch.dtype", or_class=["mismatch.size"])


def mismatch_op(rng):
    return change_call(rng, other_op, "mismatch.op")


def mismatch_name(rng):
    return change_call(rng, other_name, "mismatch.name")


def mismatch_extra(rng):
    return change_call(rng, one_more, "mismatch.extra_call", or_class=["mismatch.size", "mismatch.order"])


def mismatch_order(rng):
    job = dense(rng, kinds=("ddp",), n_steps=(5, 12))
    rank, step = rng.randrange(job.world), rng.randint(2, 4)
    for r in range(job.world):  # in each step one call of a size of its own beside the first
        for at in reversed(calls(job.ops[r])):
            op = job.ops[r][at]
            begins = max(m for m in marks(job.ops[r]) if m < at)
            if not any(begins < i < at for i in calls(job.ops[r])):
                insert(job, r, at + 1, ["coll", "dp", "allreduce", 777216, op[4], 0.4])
    first = next(i for i in calls(job.ops[rank]) if i > marks(job.ops[rank])[step])
    ops = job.ops[rank]
    ops[first], ops[first + 1] = ops[first + 1], ops[first]
    return job, want("mismatch.order", [rank])


# ---- members that stay away ----

def skipped_call(rng):
    job = dense(rng, kinds=("ddp",), n_steps=(6, 14), habits=some_habits(rng))
    rank, step = rng.randrange(job.world), rng.randint(2, 4)
    name = rng.choice(["clip", "validate", "log_metrics", "router"])
    for r in range(job.world):
        for n, at in reversed(list(enumerate(marks(job.ops[r])[1:]))):
            takes = not (r == rank and n == step)
            ops = [["ev", "loop", "branch", {"name": name, "taken": int(takes)}]]
            insert(job, r, at, *(ops + [["coll", "dp", "allreduce", 3, "f64", 0.05]] if takes else ops))
    return job, want("absent.decision_differs", [rank], or_class=["mismatch.size", "mismatch.dtype", "mismatch.order"])


def ran_out(rng):
    job = dense(rng, n_steps=(6, 14), habits=some_habits(rng))
    rank, n = rng.randrange(job.world), len(marks(job.ops[0]))
    del job.ops[rank][marks(job.ops[rank])[n - 1]:]
    job.sync([rank])
    job.ops[rank].append(["ev", "loader", "end_of_data", {"batches": n - 1}])
    return job, want("absent.uneven_input", [rank])


def dies(rng):
    job = dense(rng, n_steps=(6, 14), habits=some_habits(rng))
    rank, step = rng.randrange(job.world), rng.randint(2, 5)
    del job.ops[rank][marks(job.ops[rank])[step] + 1:]
    how = rng.choice([{"state": "gone", "signal": 9}, {"state": "zombie"}, {"state": "gone", "exit": 1}])
    job.ops[rank] += [["ev", "proc", "state", how], ["stall", "gone"]]
    return job, want("absent.crashed", [rank])


def stops(rng):
    job = dense(rng, n_steps=(6, 14), habits=some_habits(rng))
    rank, step = rng.randrange(job.world), rng.randint(2, 5)
    del job.ops[rank][marks(job.ops[rank])[step] + 1:]
    job.ops[rank] += [["ev", "proc", "state", {"state": "stopped", "signal": 19}], ["stall", "stopped"]]
    return job, want("absent.stopped", [rank])


def hangs(rng):
    job = dense(rng, n_steps=(6, 14), habits=some_habits(rng))
    rank, step = rng.randrange(job.world), rng.randint(2, 5)
    del job.ops[rank][marks(job.ops[rank])[step] + 1:]
    job.ops[rank].append(["stall", rng.choice(["lookup", "read", "lock"])])
    return job, want("stuck.localised_cause_unknown", [rank])


def busy(rng):
    job = dense(rng, n_steps=(6, 10))
    rank, step = rng.randrange(job.world), rng.randint(2, 4)
    job.watchdog_ms = rng.choice([60000, 300000])
    insert(job, rank, marks(job.ops[rank])[step], ["cpu", round(job.watchdog_ms * rng.uniform(1.2, 2)), "upload"])
    return job, want("timeout.peer_busy", [rank])


# ---- numbers ----

def nan_input(rng):
    job = dense(rng, n_steps=(6, 10))
    rank, step, n = rng.randrange(job.world), rng.randint(1, 4), rng.randint(1, 90000)
    for r in range(job.world):
        places = marks(job.ops[r])
        own = places[step]
        behind = places[step + 1]  # by then the parameters have what was reduced
        for seq, at in reversed(list(enumerate(calls(job.ops[r]), 1))):
            bad = at > behind or (r == rank and at > own)
            insert(job, r, at, ["ev", "finite", "coll_input", {"pg": "dp", "seq": seq, "nonfinite": n if bad else 0}])
    return job, want("nan.first_source", [rank])


def scaler_differs(rng):
    job = jobs.build(rng, "half precision", rng.choice([2, 4, 8]), rng.randint(8, 14), set())
    rank = rng.randrange(job.world)
    updates = [i for i, op in enumerate(job.ops[rank]) if op[0] == "ev" and op[1] == "scaler" and not op[3]["skip"]]
    op = job.ops[rank][updates[-1]]
    job.ops[rank][updates[-1]] = ["ev", "scaler", "update", {"scale": op[3]["scale"] / 2, "skip": 1}]
    return job, want("silent.scaler_disagrees", None)


def replicas_differ(rng):
    job = dense(rng, n_steps=(12, 20))
    rank, onset = rng.randrange(job.world), rng.randint(4, 8)
    for r in range(job.world):
        for n, at in reversed(list(enumerate(marks(job.ops[r])[1:] + [len(job.ops[r])]))):
            v = 1.25 + n / 1000 + (0.0007 if r == rank and n >= onset else 0)
            insert(job, r, at, ["ev", "check", "param_sum", {"step": n, "v": round(v, 6)}])
    return job, want("silent.replica_desync", [rank] if job.world > 2 else None)


# ---- what records say ----

def other_version(rng):
    job = dense(rng, n_steps=(8, 12))
    rank, key = rng.randrange(job.world), rng.choice(["nccl", "torch", "driver"])
    for r in range(job.world):
        v = {"nccl": "2.21.5", "torch": "2.4.1", "driver": "550.54.15"}
        if r == rank:
            v[key] = "2.18.1"
        insert(job, r, 0, ["ev", "meta", "versions", v])
    return job, want("config.version_mismatch", [rank])


def other_setting(rng):
    job = dense(rng, n_steps=(8, 12))
    rank = rng.randrange(job.world)
    key, usual, odd = rng.choice([("NCCL_ALGO", "Ring", "Tree"), ("NCCL_IB_DISABLE", "0", "1"), ("NCCL_PROTO", "Simple", "LL")])
    for r in range(job.world):
        insert(job, r, 0, ["ev", "meta", "env", {key: odd if r == rank else usual, "RANK": str(r)}])
    return job, want("config.setting_differs", [rank])


def other_device(rng):
    job = dense(rng, n_steps=(8, 12))
    rank = rng.randrange(job.world)
    for r in range(job.world):
        insert(job, r, 0, ["ev", "meta", "device", {"gpu": "A100-40G" if r == rank else "A100-80G",
                                                    "memory_gb": 40 if r == rank else 80, "pcie_width": 16}])
    return job, want("config.device_differs", [rank])


def memory_grows(rng):
    job = dense(rng, n_steps=(40, 60))
    rank = rng.randrange(job.world)
    for r in range(job.world):
        for n, at in reversed(list(enumerate(marks(job.ops[r])))):
            gb = 30 + (0.35 * n if r == rank else 0.05 * rng.random())
            insert(job, r, at + 1, ["gauge", "allocated_gb", round(gb, 3)])
    return job, want("memory.growth", [rank])


# ---- start-up ----

def start_only(rng, worlds=(4, 8)):
    return jobs.Job(rng, rng.choice(worlds), rng.choice([2, 4]))


def endpoints(rng):
    job = start_only(rng)
    rank, port = rng.randrange(job.world), rng.randint(20000, 50000)
    job.say("init", "rendezvous", lambda r: {"endpoint": f"head:{port + (r == rank)}", "world": job.world,
                                             "joined": 1 if r == rank else job.world - 1})
    for ops in job.ops:
        ops.append(["stall", "rendezvous"])
    return job, want("init.endpoint_differs", [rank], or_ranks=[[]])


def unresolved(rng):
    job = start_only(rng)
    host = rng.choice(list(job.hosts)[1:])
    for _ in range(3):
        job.say("init", "resolve", lambda r: {"name": "chief", "host": job.host_of(r),
                                              "res": "NXDOMAIN" if job.host_of(r) == host else "10.1.0.1"})
        job.cpu(4000, "again", job.hosts[host])
    job.say("init", "store_join", lambda r: {"ok": int(job.host_of(r) != host)})
    for ops in job.ops:
        ops.append(["stall", "join"])
    return job, want("init.name_resolution", None, host=host)


# ---- clocks ----

def clock_off(rng):
    job = dense(rng, worlds=(4, 6, 8), n_steps=(30, 50), habits=some_habits(rng) - {"late start"}, n_hosts=rng.choice([2, 3, 4]))
    job.probes, job.clock = False, {}
    host = rng.choice(list(job.hosts)[1:])
    offset = [round(rng.choice([-1, 1]) * 10 ** rng.uniform(5, 7.5)), round(rng.uniform(-60, 60), 1)]
    for r in job.hosts[host]:
        job.clock[str(r)] = offset
    return job, want("clock.offset", job.hosts[host])


def clock_off_and_late(rng):
    job = dense(rng, worlds=(4, 6), n_steps=(30, 50), n_hosts=rng.choice([2, 3]))
    job.probes, job.clock = False, {}
    host = rng.choice(list(job.hosts)[1:])
    clock = [round(rng.uniform(1e6, 2e7)), 8]
    for r in job.hosts[host]:
        job.clock[str(r)] = clock
        insert(job, r, 0, ["cpu", round(rng.uniform(2000, 6000)), "imports"])
    return job, want("clock.offset_and_launch_skew", job.hosts[host])


def clock_set(rng):
    job = dense(rng, worlds=(4, 6, 8), n_steps=(40, 50), n_hosts=rng.choice([2, 3]))
    job.probes, job.clock = False, {}
    host = rng.choice(list(job.hosts)[1:])
    clock = [0, 5, 700, round(10 ** rng.uniform(5, 7))]
    for r in job.hosts[host]:
        job.clock[str(r)] = clock
    return job, want("clock.step", job.hosts[host])


FAULTS = (slow_rank, mismatch_size, clock_off, dies, nan_input, slow_host, mismatch_dtype, ran_out, other_version, slow_all,
          mismatch_op, stops, scaler_differs, slow_stage, mismatch_extra, hangs, memory_grows, hot_device, mismatch_order,
          skipped_call, other_setting, pauses_that_move, mismatch_name, busy, replicas_differ, late_input, endpoints,
          clock_off_and_late, other_device, uneven_batch, unresolved, clock_set)


def planted(seed):
    rng = random.Random(seed * 104729 + 3)
    job, wanted = FAULTS[seed % len(FAULTS)](rng)
    spec = job.spec()
    return Fault(spec, wanted, job.noise)


if __name__ == "__main__":
    fault = planted(int(sys.argv[1]))
    fault.spec["expect"] = fault.want
    print(json.dumps(fault.spec))
