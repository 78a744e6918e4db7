#!/usr/bin/env python3
"""Healthy training jobs, drawn from a seed, in the spec language: nothing above a notice may be said of them.

Each has a parallel layout, sizes and times of its own, jitter of each piece of work up to 10 %, and some of what real jobs do
besides: evaluation, checkpoints, logging, collecting garbage, warming up, records of a healthy cluster, clocks apart with probes
that say so. `jobs.py SEED` prints one."""
import json
import random
import sys

JITTERS = (0.0, 0.02, 0.05, 0.1)


def ranks_text(ranks):
    return ",".join(str(r) for r in ranks)


class Job:
    """Per rank a list of operations; steps are marked in it, so that a fault can be planted from a step on."""

    def __init__(self, rng, world, n_hosts=1, jitter=0.0):
        self.rng, self.world, self.jitter = rng, world, jitter
        self.kind = ""
        self.ops = [[] for _ in range(world)]
        self.groups = {"dp": list(range(world))}
        self.n_calls = {}  # by group
        self.marked = rng.random() < 0.8
        self.hosts, self.clock, self.probes, self.watchdog_ms = {}, {}, False, 0
        self.noise = 0.0  # of the player, on top
        self.n_steps = 0
        self.set_hosts(n_hosts)

    def set_hosts(self, n):
        n = min(n, self.world)
        names = self.rng.sample(["ant", "bee", "cod", "dab", "elk", "fox", "gnu", "hen", "ibex", "jay", "kite", "lark"], n)
        each = -(-self.world // n)
        self.hosts = {}
        for i, name in enumerate(names):
            ranks = list(range(i * each, min((i + 1) * each, self.world)))
            if ranks:
                self.hosts[name] = ranks

    def host_of(self, rank):
        return next(name for name, ranks in self.hosts.items() if rank in ranks)

    # ---- operations ----

    def vary(self, ms):
        return round(ms * (1 + self.rng.uniform(-self.jitter, self.jitter)), 4)

    def k(self, ms, name, ranks=None):
        for r in range(self.world) if ranks is None else ranks:
            self.ops[r].append(["k", self.vary(ms), name])

    def cpu(self, ms, name, ranks=None):
        for r in range(self.world) if ranks is None else ranks:
            self.ops[r].append(["cpu", self.vary(ms), name])

    def coll(self, group, op, count, dtype, ms, **options):
        """The number of the call, from 1."""
        self.n_calls[group] = self.n_calls.get(group, 0) + 1
        for r in self.groups[group]:
            self.ops[r].append(["coll", group, op, count, dtype, self.vary(ms)] + ([options] if options else []))
        return self.n_calls[group]

    def wait(self, group, call=None):
        for r in self.groups[group]:
            self.ops[r].append(["wait", group] + ([call] if call else []))

    def sync(self, ranks=None):
        for r in range(self.world) if ranks is None else ranks:
            self.ops[r].append(["sync"])

    def say(self, category, name, fields, ranks=None):
        """fields: a dict, or a function of the rank."""
        for r in range(self.world) if ranks is None else ranks:
            self.ops[r].append(["ev", category, name, dict(fields(r) if callable(fields) else fields)])

    def gauge(self, name, value, ranks=None):
        for r in range(self.world) if ranks is None else ranks:
            self.ops[r].append(["gauge", name, value(r) if callable(value) else value])

    def step(self):
        for r in range(self.world):
            self.ops[r].append(["step", self.n_steps])
        self.n_steps += 1

    def programs(self):
        """Ranks text to operations; ranks that do the same share one."""
        who, what = {}, {}
        for r, ops in enumerate(self.ops):
            kept = ops if self.marked else [op for op in ops if op[0] != "step"]
            text = json.dumps(kept)
            who.setdefault(text, []).append(r)
            what[text] = kept
        return {ranks_text(ranks): what[text] for text, ranks in who.items()}

    def spec(self):
        prog = self.programs()
        spec = {"id": "job", "world": self.world, "pg": {g: ranks_text(m) for g, m in self.groups.items() if g != "dp"},
                "hosts": {h: ranks_text(m) for h, m in self.hosts.items()}, "prog": prog, "expect": {"verdict": None}}
        if self.clock:
            spec["clock"] = self.clock
        if self.probes:
            spec["probes"] = 1
        if self.watchdog_ms:
            spec["wd_ms"] = self.watchdog_ms
        return spec


# ---- one step of each layout ----

def ddp(rng, world, n_hosts, jitter):
    job = Job(rng, world, n_hosts, jitter)
    n_buckets, fwd, opt = rng.randint(2, 6), rng.uniform(5, 40), rng.uniform(0.5, 4)
    sizes = [rng.choice([1, 2, 4, 8, 25]) * 262144 for _ in range(n_buckets)]
    dtype, blocks = rng.choice(["f32", "bf16", "f16"]), rng.random() < 0.5

    def step():
        job.k(fwd, "forward")
        for size in sizes:
            job.k(2 * fwd / n_buckets, "backward")
            job.coll("dp", "allreduce", size, dtype, 0.3 + size / 4e6)
        job.wait("dp")
        job.k(opt, "optimizer")
        if blocks:
            job.sync()
    return job, step


def fsdp(rng, world, n_hosts, jitter):
    job = Job(rng, world, n_hosts, jitter)
    n_layers, ms, size = rng.randint(3, 8), rng.uniform(2, 9), rng.choice([1, 3, 10]) * 1000000
    xfer, ahead = ms * rng.uniform(0.2, 0.7), rng.randint(1, 2)

    def layers(factor, reduce):
        calls, order = [], range(n_layers)
        for i in order:
            while len(calls) < n_layers and len(calls) <= i + ahead - 1:
                calls.append(job.coll("dp", "all_gather", size, "bf16", xfer, nowait=1))
            job.wait("dp", calls[i])
            job.k(ms * factor, f"layer{i}")
            if reduce:
                job.coll("dp", "reduce_scatter", size, "f32", xfer)

    def step():
        layers(1, False)
        job.sync()
        layers(2, True)
        job.wait("dp")
        job.k(ms / 2, "optimizer")
        job.sync()
    return job, step


def tensor_parallel(rng, world, n_hosts, jitter):
    world = max(4, world - world % 4)
    tp = rng.choice([2, 4]) if world % 4 == 0 else 2
    job = Job(rng, world, n_hosts, jitter)
    n_layers, ms = rng.randint(4, 12), rng.uniform(0.8, 3)
    for i in range(world // tp):
        job.groups[f"tp{i}"] = list(range(i * tp, (i + 1) * tp))
    if world > tp:
        for i in range(tp):
            job.groups[f"data{i}"] = list(range(i, world, tp))

    def step():
        for direction in ("fwd", "bwd"):
            for i in range(n_layers):
                job.k(ms if direction == "fwd" else 2 * ms, f"{direction}{i}")
                for g in range(world // tp):
                    job.coll(f"tp{g}", "allreduce", 1 << 20, "bf16", 0.25)
                    job.wait(f"tp{g}")
        for i in range(tp if world > tp else 0):
            job.coll(f"data{i}", "allreduce", 8 << 20, "f32", 3)
            job.wait(f"data{i}")
        job.k(1.5, "optimizer")
        job.sync()
    return job, step


def pipeline(rng, world, n_hosts, jitter):
    p = rng.choice([2, 4])
    world = max(p, world - world % p)
    job = Job(rng, world, n_hosts, jitter)
    n_lines, m, fwd = world // p, 8 * p + rng.randint(0, 8), rng.uniform(1, 4)
    lines = [list(range(i * p, (i + 1) * p)) for i in range(n_lines)]
    for s in range(p if n_lines > 1 else 0):
        job.groups[f"stage{s}"] = [line[s] for line in lines]

    def step():
        for line in lines:
            op = ["1f1b", line, m, [job.vary(fwd) for _ in line], [job.vary(2 * fwd) for _ in line], 1 << 20, 0.05]
            for r in line:
                job.ops[r].append(op)
        for s in range(p if n_lines > 1 else 0):
            job.coll(f"stage{s}", "allreduce", 4 << 20, "f32", 2)
            job.wait(f"stage{s}")
        job.k(1.5, "optimizer")
        job.sync()
    return job, step


def experts(rng, world, n_hosts, jitter):
    world = max(4, world)
    job = Job(rng, world, n_hosts, jitter)
    n_layers, ms, spread = rng.randint(2, 5), rng.uniform(3, 8), rng.uniform(0.05, 0.2)

    def step():
        for direction in (1, 2):
            for i in range(n_layers):
                job.k(direction * ms, "attention")
                job.coll("dp", "all_to_all", 1 << 20, "bf16", 0.6)
                job.wait("dp")
                for r in range(world):  # whom the router picks changes with every batch
                    job.k(direction * ms * (1 + rng.uniform(-spread, spread)), "expert", [r])
                job.coll("dp", "all_to_all", 1 << 20, "bf16", 0.6)
                job.wait("dp")
        job.coll("dp", "allreduce", 4 << 20, "f32", 2)
        job.wait("dp")
        job.k(1, "optimizer")
        job.sync()
    return job, step


def accumulation(rng, world, n_hosts, jitter):
    job = Job(rng, world, n_hosts, jitter)
    n_micro, fwd = rng.randint(2, 6), rng.uniform(3, 12)

    def step():
        for _ in range(n_micro):
            job.k(fwd, "forward")
            job.k(2 * fwd, "backward")
        for _ in range(2):
            job.coll("dp", "allreduce", 8 << 20, "f32", 2.5)
        job.wait("dp")
        job.k(1, "optimizer")
        job.sync()
    return job, step


def local_sgd(rng, world, n_hosts, jitter):
    job = Job(rng, world, n_hosts, jitter)
    every, ms = rng.randint(3, 8), rng.uniform(6, 25)

    def step():
        job.k(ms, "forward")
        job.k(2 * ms, "backward")
        job.k(1, "optimizer")
        if job.n_steps % every == 0:
            job.coll("dp", "allreduce", 16 << 20, "f32", 6, name="parameters")
            job.wait("dp")
        job.sync()
    return job, step


def half_precision(rng, world, n_hosts, jitter):
    job, inner = ddp(rng, world, n_hosts, jitter)
    n_skipped = rng.randint(1, 6)

    def step():
        inner()
        skip = job.n_steps <= n_skipped
        scale = 65536 / 2 ** min(job.n_steps, n_skipped)
        job.coll("dp", "allreduce", 1, "f32", 0.05, name="found_inf")
        job.wait("dp")
        job.sync()
        job.say("scaler", "update", {"scale": scale, "skip": int(skip)})
    return job, step


def uneven_lengths(rng, world, n_hosts, jitter):
    job = Job(rng, world, n_hosts, jitter)
    ms, spread = rng.uniform(10, 40), rng.uniform(0.05, 0.2)

    def step():
        for r in range(world):
            share = 1 + rng.uniform(-spread, spread)
            job.gauge("tokens", int(8192 * share), [r])
            job.k(ms * share, "forward", [r])
            job.k(2 * ms * share, "backward", [r])
        job.coll("dp", "allreduce", 8 << 20, "bf16", 2.5)
        job.wait("dp")
        job.k(1, "optimizer")
        job.sync()
    return job, step


LAYOUTS = {"ddp": ddp, "fsdp": fsdp, "tensor parallel": tensor_parallel, "pipeline": pipeline, "experts": experts,
           "accumulation": accumulation, "local sgd": local_sgd, "half precision": half_precision,
           "uneven lengths": uneven_lengths}


# ---- what else jobs do ----

def say_cluster(job):
    """Everything that a healthy cluster says of itself."""
    rng, gpu = job.rng, job.rng.choice(["H100-SXM", "A100-80G", "MI300X"])
    versions = {"nccl": rng.choice(["2.19.3", "2.21.5"]), "torch": "2.4.1", "driver": "550.54.15"}
    timeout = {"NCCL_IB_TIMEOUT": "22", "OMP_NUM_THREADS": "8"}
    job.say("meta", "versions", versions)
    job.say("meta", "device", {"gpu": gpu, "memory_gb": 80, "pcie_width": 16})
    job.say("meta", "env", lambda r: {**timeout, "RANK": str(r), "LOCAL_RANK": str(job.hosts[job.host_of(r)].index(r)),
                                      "CUDA_VISIBLE_DEVICES": str(job.hosts[job.host_of(r)].index(r))})
    job.say("topo", "gpu_nic", lambda r: {"nic": f"mlx5_{job.hosts[job.host_of(r)].index(r)}", "dist": "PIX"})
    job.say("host", "pci", lambda r: {"host": job.host_of(r), "acs": "off", "iommu": "pt", "p2p": "NVLINK"})
    job.say("init", "rendezvous", {"endpoint": "10.0.0.1:29500", "world": job.world, "joined": job.world})
    job.say("init", "store_join", {"endpoint": "10.0.0.1:29500", "ok": 1})
    if len(job.hosts) > 1:
        job.say("init", "resolve", lambda r: {"name": "head", "host": job.host_of(r), "res": "10.0.0.1"})
        job.say("nccl", "bootstrap_if", lambda r: {"host": job.host_of(r), "if": "eth0",
                                                   "addr": f"10.0.0.{1 + list(job.hosts).index(job.host_of(r))}"})
        job.say("net", "connect", lambda r: {"src": r, "dst": (r + len(job.ops) // 2) % job.world, "port": 40000 + r,
                                             "res": "ok", "ms": 0.2})
        job.say("nccl", "ib_conn", {"dev": "mlx5_0", "gid_index": 3, "gid_type": "RoCEv2"})
    job.say("nccl", "comm_init", {"comm": "dp", "nranks": job.world, "ms": 812})


def say_devices(job):
    rng = job.rng
    job.say("dev", "clock", lambda r: {"sm_mhz": rng.randint(1950, 1980), "mem_mhz": 2619, "throttle": "none"})
    job.say("dev", "temperature", lambda r: {"gpu_c": rng.randint(52, 66), "memory_c": rng.randint(60, 74)})
    job.gauge("power_w", lambda r: round(rng.uniform(560, 640), 1))
    job.gauge("sm_util", lambda r: round(rng.uniform(88, 99), 1))
    job.gauge("nic_tx_gbs", lambda r: round(rng.uniform(21, 23), 2))
    job.gauge("allocated_gb", lambda r: round(41 + rng.uniform(0, 0.4), 2))
    job.gauge("reserved_gb", lambda r: round(46 + rng.uniform(0, 0.2), 2))


def draw_habits(rng):
    names = ("cluster", "devices", "evaluation", "checkpoint", "logging", "garbage", "warm-up", "late start", "input",
             "end of data", "sums")
    return {name for name in names if rng.random() < 0.3}


def before(job, habits):
    if "cluster" in habits:
        say_cluster(job)
    job.cpu(20, "setup")
    if "late start" in habits:
        job.cpu(job.rng.uniform(50, 900), "imports", [job.rng.randrange(job.world)])


def around(job, habits, step, i, kind):
    rng = job.rng
    job.step()
    if "input" in habits:
        job.cpu(0.6, "load")
        job.say("loader", "batch", lambda r: {"size": 32, "ms": round(rng.uniform(0.4, 0.8), 3)})
    if "warm-up" in habits and i == 0:
        job.cpu(400, "compile")
    step()
    if "devices" in habits and i % 5 == 4:
        say_devices(job)
    if "logging" in habits and i % 4 == 3:
        job.cpu(0.4, "log", [0])
        job.say("loss", "value", {"v": round(3 - i / 50, 3)}, [0])
    if "garbage" in habits and i % 8 == 7:
        job.cpu(25, "gc")
    if "sums" in habits and i % 6 == 5 and kind not in ("local sgd", "pipeline", "tensor parallel", "fsdp", "experts"):
        job.say("check", "param_sum", {"step": i, "v": round(1.0031 + i / 1000, 5)})
    if "evaluation" in habits and i % 15 == 14:
        for _ in range(4):
            job.k(6, "evaluate")
        job.coll("dp", "allreduce", 2, "f64", 0.05)
        job.wait("dp")
        job.sync()
    if "checkpoint" in habits and i % 20 == 19:
        everyone = rng.random() < 0.5
        job.sync()
        job.cpu(rng.uniform(60, 400), "save", None if everyone else [0])
        job.say("io", "checkpoint", {"bytes": 4000000000, "ms": 200}, None if everyone else [0])


def after(job, habits):
    job.sync()
    if "end of data" in habits:
        job.say("loader", "end_of_data", {"batches": job.n_steps})
        job.say("loop", "epoch_end", {"epoch": 0})


def draw_world(rng):
    return rng.choice([1, 2, 2, 3, 4, 4, 6, 8, 8, 8, 12, 16])


def build(rng, kind, world, n_steps, habits, n_hosts=None, jitter=None):
    n_hosts = n_hosts or rng.choice([1, 1, 2, 3, 4])
    job, step = LAYOUTS[kind](rng, world, n_hosts, rng.choice(JITTERS) if jitter is None else jitter)
    job.kind = kind
    if job.world > 1 and rng.random() < 0.3:
        job.watchdog_ms = 600000
    before(job, habits)
    for i in range(n_steps):
        around(job, habits, step, i, kind)
    after(job, habits)
    if len(job.hosts) > 1 and rng.random() < 0.4:
        job.probes = True
        for ranks in list(job.hosts.values())[1:]:
            offset = [round(rng.uniform(-5e6, 5e6)), round(rng.uniform(-40, 40), 1)]
            for r in ranks:
                job.clock[str(r)] = offset
    return job


def healthy(seed):
    rng = random.Random(seed * 7919 + 17)
    kind = list(LAYOUTS)[seed % len(LAYOUTS)]
    world, n_steps = draw_world(rng), rng.randint(12, 50)
    if rng.random() < 0.15:
        n_steps = rng.randint(1, 3)
    if seed % 25 == 24:
        kind, world, n_steps = rng.choice(["ddp", "accumulation", "tensor parallel"]), 64, rng.randint(3, 10)
    if rng.random() < 0.25:
        # Noise of the player is of the written number: it may only touch what all ranks share.
        job = build(rng, kind, world, n_steps, draw_habits(rng) & {"warm-up", "garbage", "end of data"}, jitter=0.0)
        job.noise = rng.choice([0.05, 0.1]) if len(job.programs()) == 1 else 0.0
        return job
    return build(rng, kind, world, n_steps, draw_habits(rng))


if __name__ == "__main__":
    print(json.dumps(healthy(int(sys.argv[1])).spec()))
