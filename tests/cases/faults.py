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


def fragments(rng):
    job = dense(rng, n_steps=(30, 50))
    ranks = range(job.world) if rng.random() < 0.5 else [rng.randrange(job.world)]
    for r in range(job.world):
        for at in reversed(marks(job.ops[r])):
            allocated = 30 + rng.random()
            reserved = allocated + (rng.uniform(24, 30) if r in ranks else rng.uniform(1, 3))
            insert(job, r, at + 1, ["gauge", "allocated_gb", round(allocated, 2)], ["gauge", "reserved_gb", round(reserved, 2)])
        if r in ranks:
            insert(job, r, len(job.ops[r]), ["ev", "mem", "alloc_failed", {"bytes": 4 << 30, "reserved_gb": 78.5,
                                                                          "allocated_gb": 50.1}])
    return job, want("memory.fragmentation", None)


def gathers_too_far_ahead(rng):
    job = jobs.Job(rng, rng.choice([2, 4, 8]), rng.choice([1, 2]), rng.choice(jobs.JITTERS))
    n_layers, ms, xfer = rng.randint(6, 10), rng.uniform(6, 12), rng.uniform(2, 5)
    for _ in range(rng.randint(2, 5)):
        job.step()
        gathers = []
        for i in range(n_layers):
            gathers.append(job.coll("dp", "all_gather", 40000000, "bf16", xfer, nowait=1))
            job.gauge("reserved_gb", 3 + 3 * i)
        for i in gathers:
            job.wait("dp", i)
            job.k(ms, "layer")
        job.sync()
        job.gauge("active_gb", 4)
    return job, want("memory.prefetch_depth", [], or_class=["memory.growth"])


def micro_without_sync(rng):
    job = jobs.Job(rng, rng.choice([2, 4]), 1, 0.0)
    n_micro, ms = rng.randint(2, 4), rng.uniform(3, 9)
    for _ in range(rng.randint(3, 6)):
        job.step()
        for i in range(n_micro):
            job.k(ms, f"fwd_mb{i}")
            job.k(2 * ms, f"bwd_mb{i}")
            if i == 0:
                job.coll("dp", "allreduce", 1 << 20, "f32", 2)
        job.wait("dp")
        job.k(1, "opt")
        job.sync()
    job.say("check", "param_sum", lambda r: {"step": job.n_steps - 1, "v": round(1.0031 + r * 0.0002, 5)})
    return job, want("silent.no_sync_after_last_backward", [])


def group_left_out(rng):
    job = jobs.Job(rng, 4, rng.choice([1, 2]), rng.choice(jobs.JITTERS))
    names = rng.sample(["replica", "copy", "shard", "column"], 2)
    job.groups = {names[0]: [0, 1], names[1]: [2, 3]}
    for _ in range(rng.randint(3, 8)):
        job.step()
        for line in ([0, 2], [1, 3]):
            op = ["1f1b", line, 16, 3, 6, 1000000, 0.05]
            for r in line:
                job.ops[r].append(op)
        job.coll(names[0], "allreduce", 8000000, "bf16", 3)
        job.wait(names[0])
        job.k(1, "opt")
    job.sync()
    job.say("check", "param_sum", lambda r: {"v": {2: 0.51, 3: 0.49}.get(r, 0.5)}, [2, 3])
    return job, want("silent.group_without_sync", None)


def one_nic(rng):
    """Pairs over two hosts; the first two local devices use one adapter."""
    job = jobs.Job(rng, 8, 2, 0.02)
    a, b = job.hosts.values()
    factor = rng.uniform(1.8, 2.2)
    job.groups = {f"pair{i}": [a[i], b[i]] for i in range(4)}
    nics = ["mlx5_1", "mlx5_1", "mlx5_2", "mlx5_3"] if rng.random() < 0.5 else ["bond0", "bond0", "bond1", "bond2"]
    job.say("topo", "gpu_nic", lambda r: {"nic": nics[r % 4], "dist": "PXB" if r % 4 < 2 else "PIX"})
    for _ in range(rng.randint(10, 20)):
        job.step()
        job.k(5, "bwd")
        for i in range(4):
            job.coll(f"pair{i}", "allreduce", 100000000, "bf16", 10 * factor if i < 2 else 10)
            job.wait(f"pair{i}")
    job.sync()
    return job, want("slow.shared_nic", None, has=[nics[0]])


def detour(rng):
    job = jobs.Job(rng, 8, 2, 0.02)
    names = list(job.hosts)
    bad = rng.choice(names)
    job.groups = {f"in_{h}": ranks for h, ranks in job.hosts.items()}
    job.groups["dp"] = list(range(8))
    job.say("host", "pci", lambda r: {"host": job.host_of(r), "acs": "on" if job.host_of(r) == bad else "off",
                                      "iommu": "translated" if job.host_of(r) == bad else "pt", "p2p": "PIX"})
    for _ in range(rng.randint(10, 20)):
        job.step()
        job.k(5, "bwd")
        for h in names:
            job.coll(f"in_{h}", "allreduce", 100000000, "bf16", 21 if h == bad else 11)
            job.wait(f"in_{h}")
    job.sync()
    return job, want("slow.host_p2p_path", None, host=bad)


def bubble(rng):
    p = rng.choice([4, 6])
    job = jobs.Job(rng, p, 1, 0.02)
    for _ in range(rng.randint(1, 4)):
        job.step()
        fwd = rng.uniform(20, 40)
        op = ["1f1b", list(range(p)), p, round(fwd, 3), round(2.5 * fwd, 3), 2000000, 0.3]
        for r in range(p):
            job.ops[r].append(op)
        job.k(20, "opt")
        job.sync()
    return job, want("slow.pipeline_bubble", [])


def cross(rng):
    """Two ranks use two communicators in opposite order, each call blocking."""
    job = jobs.Job(rng, 4, rng.choice([1, 2]), 0.05)
    job.groups = {"left": [0, 1, 2, 3], "right": [0, 1, 2, 3]}
    for _ in range(rng.randint(3, 8)):
        job.step()
        job.k(4, "work")
        for g in ("left", "right"):
            job.coll(g, "allreduce", 100000, "f32", 0.5, block=1)
    rank = rng.randrange(4)
    job.step()
    for r in range(4):
        for g in (("right", "left") if r == rank else ("left", "right")):
            job.ops[r].append(["coll", g, "allreduce", 100000, "f32", 0.5, {"block": 1}])
    return job, want("deadlock.group_order", [rank], or_ranks=[[], [0, 1, 2, 3]])


def both_send_first(rng):
    job = jobs.Job(rng, rng.choice([2, 4]), rng.choice([1, 2]), 0.05)
    a, b = rng.sample(range(job.world), 2)
    for _ in range(rng.randint(2, 6)):
        job.step()
        job.k(4, "work")
        job.coll("dp", "allreduce", 100000, "f32", 0.5)
        job.wait("dp")
    job.sync()
    for r, peer in ((a, b), (b, a)):
        job.ops[r] += [["p2p", [["s", peer, 4096]], 0.1, {"block": 1}], ["p2p", [["r", peer, 4096]], 0.1, {"block": 1}]]
    return job, want("deadlock.p2p_order", sorted([a, b]))


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
          clock_off_and_late, other_device, uneven_batch, unresolved, clock_set, one_nic, bubble, cross, fragments, detour,
          micro_without_sync, gathers_too_far_ahead, group_left_out, both_send_first)


def planted(seed):
    rng = random.Random(seed * 104729 + 3)
    job, wanted = FAULTS[seed % len(FAULTS)](rng)
    spec = job.spec()
    return Fault(spec, wanted, job.noise)


if __name__ == "__main__":
    fault = planted(int(sys.argv[1]))
    fault.spec["expect"] = fault.want
    print(json.dumps(fault.spec))
