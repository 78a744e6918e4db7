#!/usr/bin/env python3
"""What a PyTorch profile means: whose it is, what its device did, what its collectives were, and what it does not say.

Drawn profiles of every kind, cuts of real ones (tests/data/import), and published ones where they lie beside the
checkout (../shared/data), against what Holistic Trace Analysis says of them."""
import gzip
import json
import math
import os
import random
import re
import tarfile
import unittest

import test_import as base

KINETO = os.path.join(base.DATA, "kineto")
CUTS = os.path.join(base.ROOT, "tests", "data", "import")
BASE_NS = 1700000000000000000
COMMUNICATION = re.compile(r"nccl|rccl|deep_ep")


class Maker:
    """One rank's file. Times are microseconds."""

    def __init__(self, rank=0, world=2, **head):
        self.events, self.correlation = [], 0
        self.head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world},
                     "baseTimeNanoseconds": BASE_NS, **head}

    def span(self, cat, name, ts, dur, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": 9, "ts": ts, "dur": dur,
                            "args": args})
        return self.events[-1]

    def step(self, number, ts, dur):
        return self.span("user_annotation", f"ProfilerStep#{number}", ts, dur)

    def work(self, name, ts, dur, launched=None, stream=7, cats=("cuda_runtime", "kernel"), **args):
        self.correlation += 1
        if launched is not None:
            self.span(cats[0], "cudaLaunchKernel", launched, 3, correlation=self.correlation)
        return self.span(cats[1], name, ts, dur, stream=stream, correlation=self.correlation, **args)

    def call(self, ts, dur, launched=None, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", ranks="[0, 1]", **args):
        known = {"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2,
                 "dtype": "Float", "Process Group Name": "0", "Process Group Description": "default_pg",
                 "Process Group Ranks": ranks}
        return self.work(name, ts, dur, ts - 20 if launched is None else launched, stream=20, **{**known, **args})

    def json(self):
        return {**self.head, "traceEvents": self.events}


def job(n_ranks, late, steps=6, calls=1, ahead=(), skip=lambda rank, step, call: False, jitter=None):
    """Ranks come late[rank] us late to each call of each step; all leave it together."""
    made = []
    for rank in range(n_ranks):
        m = Maker(rank, n_ranks)
        off = ahead[rank] if ahead else 0
        for step in range(steps):
            t = 1000 + 20000 * step + off
            m.step(10 + step, t, 19990)
            for c in range(calls):
                at = t + 100 + 3000 * c
                m.work("gemm", at, 300, at - 20)
                shift = jitter(step, c) if jitter else 0
                end = at + 500 + max(late) + 50 + shift
                if not skip(rank, step, c):
                    m.call(at + 500 + late[rank] + shift, end - (at + 500 + late[rank] + shift),
                           ranks=str(list(range(n_ranks))), **{"Group size": n_ranks})
        made.append(m.json())
    return made


class Kineto(base.Folder):
    def take(self, *traces, names=None, code=0):
        """Imports them as rank0.json, …; the outcomes."""
        files = [self.file(names[i] if names else f"t{i}.json", t) for i, t in enumerate(traces)]
        if os.path.exists(self.db):
            os.unlink(self.db)
        r = base.call("import", *files, "--db", self.db, "--json")
        self.assertEqual(r.returncode, code, r.stderr + r.stdout)
        return [i["outcome"] for i in json.loads(r.stdout)["inputs"]]

    def sql(self, query):
        r = base.call("sql", self.db, "--json", query)
        self.assertEqual(r.returncode, 0, r.stderr)
        return json.loads(r.stdout)

    def whole(self, rank=None):
        rows = self.sql("SELECT * FROM profile_breakdown WHERE step IS NULL" +
                        (f" AND rank = {rank}" if rank is not None else ""))
        self.assertEqual(len(rows), 1)
        return rows[0]

    def blamed(self, v):
        return {r for x in v["verdicts"] if x["severity"] != "notice" for r in x["culprit"]["ranks"]}


def reference(trace):
    """The whole of a profile by instants of a microsecond: HTA's rules once more, by brute force."""
    spans = [e for e in trace["traceEvents"] if "stream" in e["args"]]
    steps = [e["ts"] for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep")]
    if len(steps) > 1:
        early = {e["args"]["correlation"] for e in trace["traceEvents"]
                 if "stream" not in e["args"] and "correlation" in e["args"] and e["ts"] < max(steps)}
        spans = [e for e in spans if e["args"]["correlation"] in early]
    bits = {}
    for e in spans:
        bit = 4 if e["name"].startswith("Mem") else 2 if COMMUNICATION.search(e["name"]) else 1
        for at in range(math.ceil(e["ts"]), math.floor(e["ts"] + e["dur"])):
            bits[at] = bits.get(at, 0) | bit
    begins = [math.ceil(e["ts"]) for e in spans]
    ends = [max(math.floor(e["ts"] + e["dur"]), math.ceil(e["ts"])) for e in spans]
    total = max(ends) - min(begins)

    def of(test):
        return 1000 * sum(bool(test(b)) for b in bits.values())
    return {"n_work": len(spans), "total_ns": 1000 * total, "idle_ns": 1000 * (total - len(bits)),
            "compute_ns": of(lambda b: b & 1), "communication_ns": of(lambda b: b & 2), "memory_ns": of(lambda b: b & 4),
            "overlap_ns": of(lambda b: b & 3 == 3), "compute_only_ns": of(lambda b: b == 1),
            "communication_only_ns": of(lambda b: b == 2), "memory_only_ns": of(lambda b: b == 4)}


class Breakdown(Kineto):
    KINDS = (("kernel", "gemm"), ("kernel", "ncclDevKernel_AllGather_RING_LL(x)"), ("kernel", "rcclKernel_AllReduce"),
             ("kernel", "void deep_ep::intranode::dispatch<8>(x)"), ("gpu_memcpy", "Memcpy HtoD"),
             ("gpu_memset", "Memset (Device)"))

    def draw(self, seed, n_steps, fraction):
        """Stamps near 0 and halves of a microsecond: there doubles are exact."""
        r = random.Random(seed)
        m = Maker()
        unit = 0.5 if fraction else 1
        for step in range(n_steps):
            m.step(step + 3, 1000 + 4000 * step, 3900)
        for _ in range(150):
            cat, name = r.choice(self.KINDS)
            at = 1000 + r.randrange(8000) * unit
            m.work(name, at, r.randrange(160) * unit, at - r.randrange(1, 700), r.randrange(4), ("cuda_runtime", cat))
        r.shuffle(m.events)
        return m.json()

    def test_drawn_devices_are_counted_as_one_by_one(self):
        for seed in range(6):
            trace = self.draw(seed, seed % 4, seed % 2 == 1)
            self.take(trace)
            got = self.whole()
            for key, want in reference(trace).items():
                self.assertEqual(got[key], want, (seed, key))
            self.assertEqual(got["non_compute_ns"], got["total_ns"] - got["idle_ns"] - got["compute_ns"])

    def test_a_step_is_exact_and_work_over_its_end_is_shared(self):
        m = Maker()
        m.step(5, 1000, 1000.5)
        m.step(6, 2000.5, 999.5)
        m.work("gemm", 1900.25, 200, 1100)
        m.call(1950, 100.125, 1200)
        self.take(m.json())
        rows = self.sql("SELECT * FROM profile_breakdown WHERE step IS NOT NULL ORDER BY step")
        self.assertEqual([(r["step"], r["n_work"], r["total_ns"], r["idle_ns"], r["compute_ns"], r["communication_ns"],
                           r["overlap_ns"]) for r in rows],
                         [(5, 2, 1000500, 900250, 100250, 50500, 50500), (6, 0, 999500, 899750, 99750, 49625, 49625)])
        shown = base.call("report", self.db).stdout
        self.assertIn("Profile (what the devices did", shown)
        v = self.report()["profile"]
        self.assertEqual([r["step"] for r in v["breakdown"]], [None, 5, 6])
        self.assertEqual((v["calls"][0]["n"], v["calls"][0]["in_elements"]), (1, 1024))

    def test_old_and_other_words_say_the_same(self):
        """The words of old releases, of HIP and of XPU, stamps as texts of digits, nested ranges of a device."""
        wants = None
        for runtime, kernel, copy in (("cuda_runtime", "kernel", "gpu_memcpy"), ("Runtime", "Kernel", "Memcpy"),
                                      ("hip_runtime", "kernel", "gpu_memcpy"), ("xpu_runtime", "kernel", "gpu_memcpy"),
                                      ("cuda_driver", "concurrent_kernel", "gpu_memcpy"),
                                      ("mtia_runtime", "mtia_ccp_events", "gpu_memcpy")):
            m = Maker()
            m.step(1, 1000, 500)
            m.work("gemm", 1100, 100, 1010, cats=(runtime, kernel))
            m.work("copy", 1150, 100, 1020, cats=(runtime, copy))
            m.work("ncclKernel_AllReduce_RING_LL_Sum_float(x)", 1240, 60, 1030, cats=(runtime, kernel))
            self.assertEqual(self.take(m.json()), ["ok"])
            got = {k: v for k, v in self.whole().items() if k.endswith("_ns") and k not in ("from_ns", "to_ns")}
            wants = wants or got
            self.assertEqual(got, wants)
            self.assertEqual((got["compute_ns"], got["memory_ns"], got["communication_ns"], got["idle_ns"]),
                             (100000, 100000, 60000, 0))

    def test_annotations_of_the_device_have_the_work_in_them(self):
        m = Maker()
        for name, ts, dur, tid in (("outer", 1000, 400, 7), ("inner", 1100, 100, 7), ("elsewhere", 1000, 400, 8)):
            m.span("gpu_user_annotation", name, ts, dur)["tid"] = tid
        m.span("user_annotation", "outer", 900, 50)
        for ts in (1000, 1050, 1100, 1150, 1200, 1390, 1400):
            m.work("gemm", ts, 10, ts - 100)
        self.take(m.json())
        rows = {(r["name"], r["place"]): (r["n"], r["sum_ns"], r["n_work"], r["work_ns"])
                for r in self.sql("SELECT * FROM profile_annotation")}
        self.assertEqual(rows, {("outer", "device"): (1, 400000, 4, 40000), ("inner", "device"): (1, 100000, 2, 20000),
                                ("elsewhere", "device"): (1, 400000, 0, 0), ("outer", "host"): (1, 50000, None, None)})

    def test_a_file_without_a_device_is_read_for_what_it_has(self):
        m = Maker()
        m.head["distributedInfo"]["backend"] = "gloo"
        for step in range(3):
            m.step(step, 1000 + 1000 * step, 990)
            m.span("user_annotation", "gloo:all_reduce", 1100 + 1000 * step, 300)
            m.span("cpu_op", "aten::add", 1500 + 1000 * step, 3)
        self.assertEqual(self.take(m.json()),
                         ["ok; it has no work of a device, so nothing is said of how busy one was"])
        self.assertEqual(self.sql("SELECT * FROM profile_breakdown"), [])
        self.assertEqual([(r["op"], r["step"]) for r in self.sql("SELECT op, step FROM collective ORDER BY seq")],
                         [("all_reduce", 0), ("all_reduce", 1), ("all_reduce", 2)])

    def test_a_file_of_operators_alone_is_refused(self):
        m = Maker()
        m.span("cpu_op", "aten::add", 1000, 3)
        self.assertEqual(self.take(m.json(), code=3), ["has no step, launch or device work of a profiler"])


class Traps(Kineto):
    def test_t1_who_waits_longest_is_not_who_is_slow(self):
        self.take(*job(3, (300, 0, 900), steps=8))
        longest = self.sql("SELECT rank, sum(sum_ns) AS ns FROM profile_call GROUP BY rank ORDER BY ns DESC")
        self.assertEqual(longest[0]["rank"], 1) # the trap
        v = self.report()
        self.assertEqual({a["rank"] for a in v["collectives"]["arrivals"]}, {2})
        self.assertLessEqual(self.blamed(v), {2})
        self.assertEqual(v["what_if"]["by_rank"][0]["rank"], 2)

    def test_t6_sampled_files_are_not_aligned(self):
        r = random.Random(1)
        drop = {(rank, s, c) for rank in (0, 1) for s in range(6) for c in range(5) if r.random() < 0.4}
        outcomes = self.take(*job(2, (0, 700), calls=5, skip=lambda *key: key in drop,
                                  jitter=lambda s, c: 137 * ((7 * s + 3 * c) % 11)))
        for o in outcomes:
            self.assertIn("its collectives are not matched with other ranks'", o)
        v = self.report()
        self.assertEqual((v["collectives"]["last_arrival"], self.blamed(v)), ([], set()))
        self.assertIsNone(v["what_if"]["slowdown"])
        self.assertEqual(len(self.sql("SELECT * FROM profile_breakdown WHERE step IS NULL")), 2) # each alone is fine

    def test_t7_clocks_seconds_or_a_fraction_of_a_millisecond_apart(self):
        for ahead in (5_000_000, -3_600_000_000, 300, 90_000_000_000):
            self.assertEqual(self.take(*job(2, (0, 900), ahead=(4_000_000_000, 4_000_000_000 + ahead))), ["ok", "ok"])
            hosts = {h["host"]: h for h in self.report()["clock"]["hosts"]}
            apart = hosts["of rank 0"]["offset_ns"] - hosts["of rank 1"]["offset_ns"]
            error = hosts["of rank 0"]["error_ns"] + hosts["of rank 1"]["error_ns"]
            self.assertLess(abs(apart - 1000 * ahead), min(2000, error), ahead)
            self.assertEqual({a["rank"] for a in self.report()["collectives"]["arrivals"]}, {1})

    def test_t11_work_that_begins_before_its_launch(self):
        m = Maker()
        for step in range(4):
            t = 100000 + 10000 * step
            m.step(step, t, 9990)
            m.work("gemm", t + 100 - 60000, 300, t + 50)
            m.call(t + 500 - 60000, 300, t + 450)
        self.assertEqual(self.take(m.json()), ["ok; 8 of 8 begin on the device before they are launched, by up to "
                                               "60.0 ms: host and device do not have one clock"])
        self.assertEqual(self.sql("SELECT n_work, n_launched, n_early, early_ns FROM profile"),
                         [{"n_work": 8, "n_launched": 8, "n_early": 8, "early_ns": 59950000}])
        self.assertEqual(self.whole()["compute_ns"], 900000) # the device by itself is as it was
        self.assertEqual(self.sql("SELECT * FROM profile_breakdown WHERE step IS NOT NULL"), []) # steps are the host's
        self.report()

    def test_t11_zero_starts_and_other_clocks_do_not_make_a_profile_of_years(self):
        m = Maker(baseTimeNanoseconds=0)
        at = 1700000000000000
        m.step(1, at, 1000)
        m.work("gemm", at + 100, 300, at + 50)
        m.work("gemm", 0, 300, at + 60)
        m.work("gemm", 0, 0, at + 70)
        m.work("zero", at + 600, 0, at + 80)
        m.work("gemm", at + 700, -5, at + 90)
        m.work("gemm", -7, 5, at + 90)
        self.assertEqual(self.take(m.json()), ["ok; 2 events are hours from the others and left out; 2 events have a "
                                               "time that cannot be and are left out"])
        v = self.whole()
        self.assertEqual((v["n_work"], v["compute_ns"], v["total_ns"]), (2, 300000, 500000))
        run = self.report()["run"]
        self.assertLess(run["ended_ns"] - run["started_ns"], 10**10)

    def test_t11_a_device_on_another_clock_altogether(self):
        m = Maker(baseTimeNanoseconds=0)
        host, device = 1700000000000000, 4203669603438
        for i in range(4):
            m.step(i, host + 1000 * i, 990)
            m.work("gemm", device + 1000 * i, 250, host + 1000 * i + 50)
        self.assertIn("the clock of its device is not the host's", self.take(m.json())[0])
        v = self.whole()
        self.assertEqual((v["n_work"], v["compute_ns"]), (3, 750000)) # without the last step's
        self.assertEqual(self.sql("SELECT * FROM profile_breakdown WHERE step IS NOT NULL"), [])
        run = self.report()["run"]
        self.assertLess(run["ended_ns"] - run["started_ns"], 10**10)

    def test_t12_new_names_and_other_libraries(self):
        names = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                 "void ncclDevKernel_Generic_4<4096>(x)", "rcclDevKernel_AllGather", "mscclKernel_Sum_half_Simple_false",
                 "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(x)",
                 "void deep_ep::internode_ll::dispatch<true, 7168>(x)")
        m = Maker()
        m.step(1, 1000, 5000)
        for i, name in enumerate(names):
            m.work(name, 1100 + 100 * i, 50, 1010 + i)
        self.take(m.json())
        v = self.whole()
        self.assertEqual((v["communication_ns"], v["compute_ns"]), (50000 * len(names), 0))
        self.assertEqual({r["kernel"] for r in self.sql("SELECT kernel FROM profile_call")}, set(names))

    def groups(self, ranks, config=None, **args):
        m = Maker(world=512)
        if config is not None:
            m.head["distributedInfo"]["pg_config"] = config
        m.step(1, 1000, 5000)
        m.call(1100, 50, ranks=ranks, **{"Process Group Name": "3", "Process Group Description": "ep", **args})
        outcome = self.take(m.json())[0]
        return outcome, self.sql("SELECT ranks, group_size FROM profile_call")[0], self.sql(
            "SELECT n_expected FROM collective")[0]["n_expected"]

    def test_t13_a_list_of_ranks_that_is_cut_is_completed_or_not_known(self):
        every = list(range(0, 512, 4))
        cut = str(every[:30])[:-1] + ", ...]"
        whole = {"ranks": str(every), "group_size": 128}
        told = [{"pg_name": "2", "pg_desc": "ep", "pg_size": 2, "ranks": [0, 1]},
                {"pg_name": "3", "pg_desc": "ep", "pg_size": 128, "ranks": every}]
        size = {"Group size": 128}
        self.assertEqual(self.groups(cut, told, **size), ("ok", whole, 128))
        self.assertEqual(self.groups(cut.replace("...", "…"), told, **size), ("ok", whole, 128))
        regular = {"Global rank start": 0, "Global rank stride": 4}
        self.assertEqual(self.groups(cut, None, **size, **regular), ("ok", whole, 128))
        self.assertEqual(self.groups("", None, **size, **regular), ("ok", whole, 128))
        self.assertEqual(self.groups(str(every), None, **size, **regular), ("ok", whole, 128)) # longer than we keep
        # What contradicts the beginning that is there is not it.
        for config, args in ((None, {}), (None, {"Global rank start": 1, "Global rank stride": 4}),
                             ([{"pg_name": "3", "pg_desc": "ep", "pg_size": 128, "ranks": every[1:] + [511]}], {}),
                             ([{"pg_name": "3", "pg_desc": "ep", "pg_size": 128, "ranks": every[:60]}], {}),
                             ([{"pg_name": "4", "pg_desc": "ep", "pg_size": 128, "ranks": every}], {}),
                             (None, {"Global rank start": 65000, "Global rank stride": 4})):
            outcome, call, n = self.groups(cut, config, **size, **args)
            self.assertEqual(outcome, "ok; the ranks of a process group are cut off in it and not known")
            self.assertEqual((call["ranks"], call["group_size"], n), (None, 128, None))

    def test_t13_one_name_of_two_groups(self):
        files = []
        for rank, ranks in ((0, "[0, 1]"), (1, "[0, 1]"), (2, "[2, 3]"), (3, "[2, 3]")):
            m = Maker(rank, 4)
            for step in range(6):
                t = 1000 + 9000 * step
                m.step(step, t, 8990)
                m.call(t + 500, 100, ranks=ranks, **{"Process Group Name": "1", "Process Group Description": "tp"})
                for at in (1000, 1500, 2500): # more calls than the others, and no others' clocks in them
                    m.call(t + at, 100, ranks=ranks, **{"Process Group Name": "1", "Process Group Description": "tp"})
                for at in (3000, 5000):
                    m.call(t + at + 100 * rank, 900 - 100 * rank, ranks="[0, 1, 2, 3]", **{"Group size": 4})
            files.append(m.json())
        self.assertEqual(self.take(*files), ["ok"] * 4)
        self.assertEqual(self.sql("SELECT DISTINCT comm_id, n_expected, n_seen FROM collective ORDER BY comm_id"),
                         [{"comm_id": "0 (default_pg)", "n_expected": 4, "n_seen": 4},
                          {"comm_id": "1 (tp) of ranks 0 to 1", "n_expected": 2, "n_seen": 2},
                          {"comm_id": "1 (tp) of ranks 2 to 3", "n_expected": 2, "n_seen": 2}])

    def test_t14_a_rank_that_only_the_name_tells(self):
        traces = job(2, (0, 500))
        for t in traces:
            del t["distributedInfo"]
        for names in (("rank-0.Jul_15.1074.pt.trace.json", "rank-1.Jul_15.1075.pt.trace.json"),
                      ("worker0_step_12.pt.trace.json", "worker1_step_12.pt.trace.json"),
                      ("sampled_rank_0.json", "inference_rank_1.json")):
            self.assertEqual(self.take(*traces, names=names), ["ok; its rank is from its name"] * 2)
            self.assertEqual({a["rank"] for a in self.report()["collectives"]["arrivals"]}, {1})
        self.assertEqual(self.take(traces[1], names=("some.json",)),
                         ["ok; it does not say which rank it is, neither inside nor in its name: taken as rank 0"])
        self.assertEqual(self.sql("SELECT rank, rank_from FROM profile"), [{"rank": 0, "rank_from": "assumed"}])
        outcomes = self.take(*traces, names=("some.json", "other.json"), code=5)
        self.assertIn("does not say which rank it is", outcomes[1])
        traces[0]["distributedInfo"] = {"backend": "nccl"} # without a rank
        self.take(traces[0], names=("local_rank_1.json",))
        self.assertEqual(self.sql("SELECT rank_from FROM profile"), [{"rank_from": "assumed"}])

    def test_what_is_inside_counts_more_than_the_name(self):
        self.take(job(1, (0,))[0], names=("rank9.json",))
        self.assertEqual(self.sql("SELECT rank, rank_from FROM profile"), [{"rank": 0, "rank_from": "file"}])


class Cuts(Kineto):
    """A few hundred events of the recordings of two GPUs."""

    def take_mode(self, mode):
        r = base.call("import", *[os.path.join(CUTS, f"kineto_{mode}_rank{i}.json.gz") for i in (0, 1)], "--db", self.db)
        self.assertEqual(r.returncode, 0, r.stderr)
        v = self.report()
        self.assertEqual((v["steps"]["first"], v["steps"]["n"]), (10, 4))
        self.assertEqual([(x["class"], x["culprit"]["ranks"]) for x in v["verdicts"] if x["severity"] != "notice"],
                         [("slow.fixed_rank", [1])])
        return v

    def check_whole(self, mode):
        for rank in (0, 1):
            with gzip.open(os.path.join(CUTS, f"kineto_{mode}_rank{rank}.json.gz")) as f:
                want, got = reference(json.load(f)), self.whole(rank)
            for key, ns in want.items():
                self.assertEqual(got[key], ns, (rank, key))

    def test_ddp(self):
        v = self.take_mode("ddp")
        self.check_whole("ddp")
        calls = [c for c in v["profile"]["calls"] if c["collective"] == "allreduce"]
        self.assertEqual(sum(c["n"] for c in calls), 2 * 56)
        self.assertEqual({(c["dtype"], c["group"], c["group_name"], c["ranks"]) for c in calls},
                         {("Float", "0", "default_pg", "[0, 1]")})
        waits = {r["rank"]: r["communication_ns"] for r in v["profile"]["breakdown"] if r["step"] == 11}
        self.assertGreater(waits[0], 10 * waits[1]) # and rank 1 is the slow one

    def test_fsdp(self):
        v = self.take_mode("fsdp")
        self.check_whole("fsdp")
        kinds = {}
        for c in v["profile"]["calls"]:
            self.assertIn((c["collective"], c["out_elements"] * 2 == c["in_elements"]),
                          {("_allgather_base", False), ("_reduce_scatter_base", True)})
            kinds[c["collective"]] = kinds.get(c["collective"], 0) + c["n"]
        self.assertEqual(kinds, {"_allgather_base": 2 * 68, "_reduce_scatter_base": 2 * 36})


@unittest.skipUnless(os.path.isdir(KINETO), "the published profiles are not beside the checkout")
class Published(Kineto):
    # idle, compute, non-compute, total in us, overlap in %: HTA's numbers
    TABLE = {
        "nccl_parser_config": [(338781, 75169, 21636, 435586, 14.31)],
        "trace_filter": [(321378, 106252, 172428, 600058, 11.81), (328671, 135548, 136455, 600674, 20.05)],
        "ns_resolution_trace": [(10113, 372150, 2371, 384634, None)],
        "trace_diff": [(62119, 234760, 86525, 383404, 47.03)],
        "negative_queue_length_values_check": [(705853, 143836, 166865, 1016554, 1.37)],
        "param_dlrm_8rank": [(6419, 1034, 5556, 13009, 4.50), (6428, 1246, 11075, 18749, 2.47),
                             (7046, 1068, 3236, 11350, 7.88), (8145, 1240, 9468, 18853, 3.31),
                             (8887, 1126, 6576, 16589, 0.56), (9121, 1041, 6230, 16392, 0.64),
                             (7051, 1051, 3308, 11410, 7.56), (8308, 1059, 1600, 10967, 9.51)],
    }

    def files_of(self, folder):
        found = []
        for at, _, names in sorted(os.walk(os.path.join(KINETO, folder))):
            found += [os.path.join(at, n) for n in sorted(names) if n.endswith((".json", ".json.gz"))]
        tar = os.path.join(KINETO, folder, "dlrm_kineto.tar.gz")
        if os.path.exists(tar):
            with tarfile.open(tar) as t:
                for m in t:
                    if m.isfile() and m.name.endswith(".json"):
                        found.append(self.file(os.path.basename(m.name), t.extractfile(m).read()))
        return sorted(found)

    def import_all(self, files, code=0):
        if os.path.exists(self.db):
            os.unlink(self.db)
        r = base.call("import", *files, "--db", self.db, "--json")
        self.assertEqual(r.returncode, code, r.stderr)
        return json.loads(r.stdout)["inputs"]

    def near(self, got_ns, want_us, what):
        self.assertLessEqual(abs(got_ns / 1000 - want_us), max(5, want_us / 1000), what)

    def test_every_value_is_hta_s(self):
        for folder, wants in self.TABLE.items():
            self.import_all(self.files_of(folder))
            rows = self.sql("SELECT * FROM profile_breakdown WHERE step IS NULL ORDER BY rank")
            self.assertEqual(len(rows), len(wants))
            for row, (idle, compute, rest, total, overlap) in zip(rows, wants):
                self.near(row["idle_ns"], idle, (folder, "idle"))
                self.near(row["compute_ns"], compute, (folder, "compute"))
                self.near(row["non_compute_ns"], rest, (folder, "non-compute"))
                self.near(row["total_ns"], total, (folder, "total"))
                if overlap is None:
                    self.assertIsNone(row["overlap_ratio"])
                else:
                    self.assertLessEqual(abs(100 * row["overlap_ratio"] - overlap), 0.1, folder)

    def test_by_type(self):
        for folder, wants in (("nccl_parser_config", (71696, 20621, 3473, 831)), ("param_dlrm_8rank", (7213, 46880, 1652, 159))):
            self.import_all(self.files_of(folder))
            row = self.sql("SELECT sum(compute_only_ns) AS a, sum(communication_only_ns) AS b, sum(overlap_ns) AS c, "
                           "sum(memory_only_ns) AS d FROM profile_breakdown WHERE step IS NULL")[0]
            for key, want in zip("abcd", wants):
                self.near(row[key], want, (folder, key))

    def test_the_kernels_of_nccl_and_their_arguments(self):
        self.import_all(self.files_of("nccl_parser_config"))
        rows = self.sql("SELECT * FROM profile_call")
        self.assertEqual(sum(r["n"] for r in rows), 21)
        self.assertEqual({(r["group"], r["group_name"], r["group_size"], r["ranks"]) for r in rows},
                         {("0", "default_pg", 2, "[0, 1]")})
        first = min((r for r in rows if r["collective"] == "allreduce"), key=lambda r: r["first_ns"])
        self.assertEqual((first["in_elements"], first["out_elements"], first["dtype"]), (2049000, 2049000, "Float"))

    def test_annotations_of_ns_resolution(self):
        self.import_all(self.files_of("ns_resolution_trace"))
        self.assertEqual(self.whole()["n_work"], 4876)
        rows = self.sql("SELECT * FROM profile_annotation")
        self.assertEqual([sum(r["place"] == p for r in rows) for p in ("device", "host")], [3, 12])
        self.assertEqual([r["n_work"] for r in rows if r["place"] == "device" and r["name"].startswith("Optimizer.step")],
                         [27])

    def test_dlrm_who_comes_last_and_who_is_never_blamed(self):
        self.import_all(self.files_of("param_dlrm_8rank"))
        v = self.report()
        self.assertEqual([a["rank"] for a in v["collectives"]["arrivals"]], [7, 7, 7, 7, 7, 5, 5, 4])
        last = self.sql("SELECT latest_rank, last_rank, decided FROM collective ORDER BY seq")
        self.assertEqual([r["latest_rank"] for r in last], [7, 7, 7, 7, 7, 5, 5, 4])
        self.assertTrue(all(r["last_rank"] == r["latest_rank"] for r in last if r["decided"]))
        self.assertNotIn(1, self.blamed(v))
        self.assertNotIn(1, [r["rank"] for r in v["collectives"]["last_arrival"]])

    def test_each_file_has_its_outcome(self):
        none = "it has no work of a device, so nothing is said of how busy one was"
        unknown = "it does not say which rank it is, neither inside nor in its name: taken as rank 0"
        wants = { # rank, work of the device in all, the sentence
            "amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz": (0, 16, f"ok; {unknown}"),
            "call_stack/backward_thread.json": (0, 1, "ok"),
            "cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz": (34, 0, f"ok; {none}"),
            "critical_path/cuda_event_sync/event_sync_trace.json.gz": (0, 5, "ok"),
            "critical_path/end_to_end/simple_add/input/trace.json.gz": (0, 98, "ok"),
            "critical_path/end_to_end/simple_add/output/overlaid_critical_path_trace.json.gz": (0, 98, "ok"),
            "critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz": (0, 98, "ok"),
            "cupti_profiler/benchmark_result_924719_1679055439_trace.json.gz": (0, 0, f"ok; {none}"),
            "distributed_info_unavailable/distributed_info_not_found.json.gz": (0, 0, f"ok; {unknown}; {none}"),
            "execution_trace/benchmark_simple_add_trace.json.gz": (0, 4, "ok"),
            "nccl_parser_config/nccl_data.json.gz": (0, 3774, "ok"),
            "negative_queue_length_values_check/rank0.json.gz": (0, 7747, "ok"),
            "ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": (0, 6095, "ok"),
            "rank_non_gpu/rank_non_gpu.json.gz": (0, 0, f"ok; {none}"),
            "rank_unavailable/rank_not_found.json.gz": (0, 0, f"ok; {unknown}; {none}"),
            "trace_compare/base/base.json.gz": (1, 18, "ok"),
            "trace_compare/test/test.json.gz": (1, 17, "ok"),
            "trace_diff/control/control.json.gz": (3, 9450, "ok"),
            "trace_file_list/inference_rank_1.json.gz": (1, 4, "ok"),
            "trace_filter/sampled_rank-0.json.gz": (0, 1204, "ok"),
            "trace_filter/sampled_rank-1.json.gz": (1, 1154, "ok"),
            "triton_example/triton_example.json.gz": (0, 1, f"ok; {unknown}"),
        }
        found = {os.path.relpath(f, KINETO) for folder in os.listdir(KINETO) if folder != "param_dlrm_8rank"
                 for f in self.files_of(folder)}
        # An execution trace is no profile; whether its own format is read is not asked here.
        self.assertEqual(found - set(wants), {"execution_trace/benchmark_simple_add_et.json.gz"})
        for name, (rank, n_work, outcome) in wants.items():
            got = self.import_all([os.path.join(KINETO, name)])[0]
            self.assertEqual((got["format"], got["rank"], got["outcome"]), ("Kineto trace", rank, outcome), name)
            row = self.sql("SELECT n_work, n_early, n_left_out FROM profile")
            self.assertEqual(row, [{"n_work": n_work, "n_early": 0, "n_left_out": 0}], name)
            self.report()

    def test_sampled_profiles_are_refused_alignment(self):
        for got in self.import_all(self.files_of("trace_filter")):
            self.assertIn("its collectives are not matched with other ranks'", got["outcome"])
        self.assertEqual(self.blamed(self.report()), set())


if __name__ == "__main__":
    unittest.main()
