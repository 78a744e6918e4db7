"""The bootstrap beside real PyTorch: what a script is known to do is what the file says, and
the script cannot tell whether it is traced.

Usage: test_bootstrap.py [BUILD_FOLDER]  (or SYNCLINE_BUILD)
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

import ringfile as R

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD") or os.path.join(HERE, "..", "..", "b"))
PYTHON = os.environ.get("SYNCLINE_PYTHON", sys.executable)
TIMEOUT_S = 120


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Job:
    """n ranks of one command, traced or not; what they printed and what the files say."""

    def __init__(self, command, n=1, traced=True, rank=True, **environment):
        self.directory = tempfile.mkdtemp(prefix="syncline-test-", dir="/dev/shm")
        base = {k: v for k, v in os.environ.items()
                if not k.startswith(("SYNCLINE_", "RANK", "WORLD_SIZE", "PYTHON"))}
        base.update(OMP_NUM_THREADS="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()),
                    SYNCLINE_DIR=self.directory, PYTHONDONTWRITEBYTECODE="1")
        if traced:
            base["PYTHONPATH"] = os.path.join(BUILD, "agent", "python")
        procs = []
        for i in range(n):
            env = dict(base)
            if rank:
                env.update(RANK=str(i), LOCAL_RANK=str(i), WORLD_SIZE=str(n),
                           LOCAL_WORLD_SIZE=str(n))
            env.update(environment)
            procs.append(subprocess.Popen([PYTHON, *command], env=env, text=True, cwd=HERE,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        try:
            done = [p.communicate(timeout=TIMEOUT_S) for p in procs]
        finally:
            for p in procs:
                p.kill()
        self.out = [o for o, _ in done]
        self.err = [e for _, e in done]
        self.codes = [p.returncode for p in procs]
        self.ranks = R.read_all(self.directory) if os.path.isdir(self.directory) else {}
        shutil.rmtree(self.directory, ignore_errors=True)

    def lines(self, rank, first):
        return [line for line in self.out[rank].splitlines() if line.startswith(first)]


def script(name):
    return [os.path.join(HERE, "bootstrap", name)]


def code(text):
    return ["-c", textwrap.dedent(text)]


class Case(unittest.TestCase):
    def same(self, with_probe, without):
        self.assertEqual(without.codes, [0] * len(without.codes), without.err)
        self.assertEqual(with_probe.codes, without.codes, with_probe.err)
        self.assertEqual(with_probe.out, without.out)

    def nothing_lost(self, job, n):
        self.assertEqual(sorted(job.ranks), list(range(n)))
        for f in job.ranks.values():
            self.assertEqual(f.n_lost, 0)
            self.assertEqual([r for r in f.records("meta.probe") if r["state"] == "failed"], [])


class Training(Case):
    """6 steps, 3 of 3 micro-batches, an evaluation of 4 batches, 2 steps; 3 ranks."""

    @classmethod
    def setUpClass(cls):
        cls.job = Job(script("train.py"), 3, SYNCLINE_RUN="run-7")
        cls.plain = Job(script("train.py"), 3, traced=False)

    def test_losses_and_parameters_are_bit_identical(self):
        self.same(self.job, self.plain)
        self.assertEqual(len(self.job.lines(0, "loss")), 8)

    def test_stderr_is_the_same(self):
        self.assertEqual(self.job.err, self.plain.err)

    def test_every_rank_has_its_identity(self):
        self.nothing_lost(self.job, 3)
        for r, f in self.job.ranks.items():
            self.assertEqual((f.rank, f.local_rank, f.world_size, f.local_world_size,
                              f.restart_count, f.run_id, f.closed), (r, r, 3, 3, 0, "run-7", 1))

    def test_steps_are_contiguous_and_as_many_as_the_script_made(self):
        for f in self.job.ranks.values():
            self.assertEqual(f.steps_ended(), list(range(11)))
            begins = f.kind(R.STEP_BEGIN)
            self.assertEqual([e.step for e in begins], list(range(12)))
            for end, begin in zip(f.kind(R.STEP_END), begins[1:]):
                self.assertEqual(end.tick, begin.tick)

    def test_training_phases_carry_step_and_micro_batch(self):
        micro = [(s, m) for s in range(11) for m in (range(3) if 6 <= s < 9 else (0,))]
        optimizer = [(s, 2 if 6 <= s < 9 else 0) for s in range(11)]
        for f in self.job.ranks.values():
            for kind in (R.PHASE_BEGIN, R.PHASE_END):
                self.assertEqual(f.phases(R.FORWARD, kind), micro)
                self.assertEqual(f.phases(R.BACKWARD, kind), micro)
                self.assertEqual(f.phases(R.OPTIMIZER, kind), optimizer)

    def test_data_phases_cover_each_batch_and_each_start_and_end_of_a_loader(self):
        for f in self.job.ranks.values():
            self.assertEqual(len(f.phases(R.DATA)), 6 + 9 + 2 + 2 * 3)
            for batch in [(s, m) for s in range(6, 9) for m in range(3)]:
                self.assertIn(batch, f.phases(R.DATA))

    def test_evaluation_is_its_own_phase_inside_the_step_it_delays(self):
        for f in self.job.ranks.values():
            # 4 forwards, and the loader's start, 4 batches and end.
            self.assertEqual(f.phases(R.EVAL), [(9, 0)] * (4 + 6))
            self.assertEqual(f.phases(R.EVAL, R.PHASE_END), [(9, 0)] * (4 + 6))

    def test_phases_nest(self):
        for f in self.job.ranks.values():
            open_phases = []
            for e in f.kind(R.PHASE_BEGIN, R.PHASE_END):
                if e.kind == R.PHASE_BEGIN:
                    open_phases.append((e.flags, e.low, e.ring))
                else:
                    self.assertEqual(open_phases.pop(), (e.flags, e.low, e.ring))
            self.assertEqual(open_phases, [])

    def test_buckets_are_complete_and_in_order(self):
        # One bucket before DDP has rebuilt them (first iteration), then two; none in no_sync().
        expected = [(0, 0, 0)]
        for s in range(1, 11):
            expected += [(s, 2 if 6 <= s < 9 else 0, b) for b in range(2)]
        for f in self.job.ranks.values():
            for kind in (R.BUCKET_READY, R.BUCKET_SUBMIT, R.BUCKET_REDUCED):
                self.assertEqual(sorted(f.buckets(kind)), expected)
            submitted = {(e.step, e.low): e for e in f.kind(R.BUCKET_SUBMIT)}
            reduced = {(e.step, e.low): e for e in f.kind(R.BUCKET_REDUCED)}
            for e in f.kind(R.BUCKET_READY):
                self.assertLessEqual(e.tick, submitted[e.step, e.low].tick)
                self.assertLess(submitted[e.step, e.low].tick, reduced[e.step, e.low].tick)

    def test_a_bucket_names_its_collective(self):
        for f in self.job.ranks.values():
            reduces = {c.seq: c for c in f.collectives(R.ALL_REDUCE)}
            for e in f.kind(R.BUCKET_SUBMIT, R.BUCKET_REDUCED):
                self.assertEqual(reduces[e.b].step, e.step)
                self.assertFalse(reduces[e.b].sync)

    def test_collectives_agree_over_the_ranks(self):
        first = self.job.ranks[0].collectives()
        # Comparing shapes and sending parameters when DDP is built, then 21 buckets.
        self.assertEqual([c.op for c in first],
                         [R.ALL_GATHER, R.BROADCAST] + [R.ALL_REDUCE] * 21)
        self.assertEqual([c.seq for c in first], list(range(23)))
        for f in self.job.ranks.values():
            self.assertEqual(f.collectives(), first)
            self.assertEqual(sorted(e.low for e in f.kind(R.COLL_END)), list(range(23)))

    def test_bucket_layout_is_told_before_and_after_the_rebuild(self):
        for f in self.job.ranks.values():
            adds = f.records("bucket.add")
            self.assertEqual([(a["id"], a["rebuilt"], a["bytes"]) for a in adds],
                             [(0, False, 6532), (0, True, 4356), (1, True, 2176)])
            self.assertEqual(adds[1]["param"], ["4.bias", "4.weight", "2.bias", "2.weight"])
            self.assertEqual(f.records("bucket.rebuilt"), [{"ddp": 0, "count": 2}])

    def test_groups_logs_and_environment_are_told(self):
        for f in self.job.ranks.values():
            self.assertEqual([g["ranks"] for g in f.records("meta.group")], [[0, 1, 2]])
            self.assertIn("train\t1 of three", [t.text for t in f.logs()])
            self.assertEqual(f.records("init.backend")[0]["backend"], "gloo")
            self.assertTrue(f.records("init.rendezvous")[-1]["joined"])
            self.assertIn("torch", f.records("meta.versions")[0])
            self.assertEqual(f.records("meta.env")[0]["OMP_NUM_THREADS"], "1")
            self.assertIn("cpu", f.records("meta.device")[0])


class Hooks(Case):
    """Eleven DDPs in one process, by their number; 3 ranks (1/3 is no exact number)."""

    @classmethod
    def setUpClass(cls):
        cls.job = Job(script("hooks.py"), 3)
        cls.plain = Job(script("hooks.py"), 3, traced=False)

    def claim(self, name, ddp, ready, submitted):
        for rank in range(3):
            lines = self.plain.lines(rank, name + " ")
            self.assertGreater(len(lines), 1)
            self.assertEqual(self.job.lines(rank, name + " "), lines)
        for f in self.job.ranks.values():
            count = [sum(e.flags >> 12 == ddp for e in f.kind(k))
                     for k in (R.BUCKET_READY, R.BUCKET_SUBMIT, R.BUCKET_REDUCED)]
            if ready is not None:
                self.assertEqual(count[0], ready)
            self.assertEqual(count[1:], [submitted, submitted])

    def test_nothing_fails_and_all_is_as_without(self):
        self.same(self.job, self.plain)
        self.nothing_lost(self.job, 3)

    def test_free_place_is_used(self):
        self.claim("plain", 0, 11, 11)

    def test_user_hook_before_the_first_forward_wins_and_is_traced(self):
        self.claim("before", 1, 11, 11)

    def test_user_hook_after_three_iterations_wins_and_is_traced(self):
        self.claim("after", 2, 11, 11)

    def test_builtin_hook_wins_and_is_traced(self):
        self.claim("builtin", 3, 11, 11)

    def test_builtin_hook_after_three_iterations_wins_and_is_traced(self):
        self.claim("builtin late", 4, 11, 11)

    def test_under_join_the_place_is_declined(self):
        self.claim("join", 5, None, 0)
        for f in self.job.ranks.values():
            declined = [r["error"] for r in f.records("meta.probe")
                        if r["source"] == "ddp.hook" and r["ddp"] == 5]
            self.assertEqual(declined, ["join() is in use"])

    def test_join_after_the_place_is_taken_divides_by_the_ranks_that_are_left(self):
        for rank in range(3):
            self.assertEqual(self.job.lines(rank, "join late"), self.plain.lines(rank, "join late"))

    def test_gradients_as_views_keep_their_own_division(self):
        # Readiness comes from parameters, by the layout that DDP has told so far.
        self.claim("views", 7, 1 + 1 + 2 + 2, 0)

    def test_find_unused_parameters(self):
        self.claim("unused", 8, None, 12)

    def test_static_graph(self):
        # DDP looks at the second iteration here, so that two have one bucket.
        self.claim("static", 9, None, 6)

    def test_hook_that_sends_nothing_has_nothing_submitted(self):
        self.claim("silent", 10, 3, 0)

    def test_collectives_agree_over_the_ranks(self):
        first = [c[:5] for c in self.job.ranks[0].collectives()]
        for f in self.job.ranks.values():
            self.assertEqual([c[:5] for c in f.collectives()], first)
        for f in self.job.ranks.values():
            self.assertEqual(sorted(e.low for e in f.kind(R.COLL_END)),
                             sorted(c[3] for c in first))


class Collectives(Case):
    @classmethod
    def setUpClass(cls):
        cls.job = Job(script("collectives.py"), 4)

    def in_group(self, rank, *members):
        f = self.job.ranks[rank]
        names = [g["name"] for g in f.records("meta.group") if g["ranks"] == list(members)]
        return [c for c in f.collectives() if c.group in names]

    def test_script_ran(self):
        self.assertEqual(self.job.codes, [0] * 4, self.job.err)
        self.nothing_lost(self.job, 4)

    def test_world(self):
        n = 8 * 4
        expected = [(R.ALL_REDUCE, R.F32, n), (R.BROADCAST, R.F32, n), (R.ALL_GATHER, R.F32, n),
                    (R.REDUCE, R.F32, n), (R.GATHER, R.F32, n), (R.SCATTER, R.F32, n),
                    (R.ALL_GATHER, R.OBJECT, 0), (R.BROADCAST, R.OBJECT, 0), (R.BARRIER, 0, 0),
                    (R.BARRIER, 0, 0)]
        for rank in range(4):
            found = self.in_group(rank, 0, 1, 2, 3)
            # A call that raises before it sends leaves no gap: its number is used again.
            self.assertEqual([(c.op, c.dtype, c.bytes) for c in found],
                             expected + [(R.ALL_REDUCE, 0, 0), (R.ALL_REDUCE, R.F32, n)])
            self.assertEqual([c.seq for c in found], [*range(10), 10, 10])
            self.assertTrue(all(c.sync for c in found))

    def test_subgroups_count_for_themselves(self):
        for rank in range(4):
            members = (0, 1) if rank < 2 else (2, 3)
            found = self.in_group(rank, *members)
            self.assertEqual([(c.op, c.dtype, c.bytes, c.seq, c.sync) for c in found],
                             [(R.ALL_REDUCE, R.F32, 32, 0, True),
                              (R.ALL_REDUCE, R.I64, 40, 1, False),
                              (R.BARRIER, 0, 0, 2, False)])
            self.assertEqual(self.in_group(rank, *((2, 3) if rank < 2 else (0, 1))), [])

    def test_messages_count_for_each_direction(self):
        for rank, op in ((0, R.SEND), (3, R.RECV)):
            found = self.job.ranks[rank].collectives(op)
            self.assertEqual([(c.seq, c.sync, c.bytes) for c in found],
                             [(0, True, 32), (1, False, 32)])
            self.assertEqual({c.group for c in found}, {"0 p2p 0>3"})

    def test_every_collective_that_was_sent_has_its_end(self):
        for f in self.job.ranks.values():
            begun = {(e.name, e.low) for e in f.kind(R.COLL_BEGIN)}
            self.assertEqual(sorted((e.name, e.low) for e in f.kind(R.COLL_END)), sorted(begun))


class Loops(Case):
    def both(self, command, **environment):
        job = Job(command, **environment)
        self.same(job, Job(command, traced=False))
        self.nothing_lost(job, 1)
        return job.ranks[0]

    def test_two_optimizers_make_one_step(self):
        f = self.both(script("gan.py"))
        self.assertEqual(len(f.phases(R.OPTIMIZER)), 10 + 6)
        self.assertEqual(len(f.phases(R.BACKWARD)), 10 + 6)
        # The first step ends with the first optimizer's; later ones begin with the second's.
        pairs = [(s, m) for s in range(1, 5) for m in (0, 1)]
        self.assertEqual(f.phases(R.BACKWARD)[:9], [(0, 0)] + pairs)
        # The third step of a new optimizer shows that it has taken over.
        self.assertEqual(f.steps_ended(), list(range(5 + 1 + 3)))

    def test_loop_without_an_optimizer_steps_by_its_forward(self):
        f = self.both(script("manual.py"))
        self.assertEqual(f.steps_ended(), list(range(7)))
        self.assertEqual([s for s, _ in f.phases(R.BACKWARD)], list(range(7)))
        self.assertEqual(f.phases(R.EVAL), [(3, 0)])
        # The forward that failed is closed when the loop asks for its next batch.
        self.assertEqual(len(f.phases(R.FORWARD)), len(f.phases(R.FORWARD, R.PHASE_END)))

    def test_workers_are_no_ranks(self):
        job = Job(script("workers.py"))
        self.assertEqual(job.out, ["fork 2 False\nspawn 2 False\n"], job.err)
        self.nothing_lost(job, 1)
        self.assertEqual(len(job.ranks[0].phases(R.DATA)), 2 * (1 + 4 + 1))

    def test_level_1_tells_steps_and_level_0_nothing(self):
        one = Job(script("gan.py"), SYNCLINE_LEVEL="1").ranks[0]
        self.assertEqual(one.steps_ended(), list(range(9)))
        self.assertEqual(one.kind(R.PHASE_BEGIN, R.PHASE_END), [])
        zero = Job(script("gan.py"), SYNCLINE_LEVEL="0").ranks[0]
        self.assertEqual(zero.events, [])


class Guest(Case):
    """Without torch: what any Python program may do."""

    def test_exception_is_told_and_the_exit_code_is_the_same(self):
        command = code("""
            def train():
                raise ValueError("loss is not a number")
            train()
        """)
        job, plain = Job(command), Job(command, traced=False)
        self.assertEqual((job.codes, job.err), (plain.codes, plain.err))
        self.assertEqual(job.codes, [1])
        told = job.ranks[0].logs(2)
        self.assertEqual(len(told), 1)
        self.assertTrue(told[0].text.startswith("ValueError: loss is not a number\n"))
        self.assertIn("in train", told[0].text)

    def test_exception_of_a_thread_and_under_a_foreign_hook(self):
        job = Job(code("""
            import sys, threading
            t = threading.Thread(target=lambda: 1 / 0)
            t.start()
            t.join()
            sys.excepthook = lambda *_: print("own hook")
            raise KeyError("last")
        """))
        self.assertEqual((job.codes, job.out), ([1], ["own hook\n"]))
        self.assertEqual([t.text.split(":")[0] for t in job.ranks[0].logs(2)],
                         ["ZeroDivisionError", "KeyError"])

    def test_exit_status_of_the_program_stays(self):
        self.assertEqual(Job(code("raise SystemExit(7)")).codes, [7])

    def test_logging_set_up_stays_as_the_program_wants_it(self):
        command = code("""
            import logging
            logging.basicConfig(format="%(levelname)s|%(message)s")
            logging.getLogger("a.b").error("%s", "text")
            logging.getLogger().debug("below the level")
            print(len(logging.getLogger().handlers))
        """)
        job, plain = Job(command), Job(command, traced=False)
        self.assertEqual((job.out, job.err), (plain.out, plain.err))
        self.assertEqual([(t.level, t.text) for t in job.ranks[0].logs()], [(40, "a.b\ttext")])

    def test_missing_directory_leaves_the_program_alone(self):
        job = Job(code("print('fine')"), SYNCLINE_DIR="/proc/no/such/place")
        self.assertEqual((job.codes, job.out, job.err), ([0], ["fine\n"], [""]))
        self.assertEqual(job.ranks, {})

    def passive(self, **options):
        job = Job(code("""
            import os, sys
            print("syncline_boot" in sys.modules, "SYNCLINE_RANK_PID" in os.environ)
        """), **options)
        self.assertEqual((job.codes, job.err), ([0], [""]))
        self.assertEqual(job.ranks, {})
        return job.out[0]

    def test_no_rank_is_passive(self):
        self.assertEqual(self.passive(rank=False), "False False\n")

    def test_off_is_passive(self):
        self.assertEqual(self.passive(SYNCLINE_OFF="1"), "False False\n")

    def test_child_of_a_rank_is_passive(self):
        self.assertEqual(self.passive(SYNCLINE_RANK_PID="1"), "False True\n")

    def test_child_process_of_a_rank_writes_nothing(self):
        job = Job(code("""
            import os, subprocess, sys
            subprocess.run([sys.executable, "-c", "print(1)"], check=True)
            pid = os.fork()
            if pid == 0:
                import logging
                logging.error("from the child")
                os._exit(0)
            os.waitpid(pid, 0)
        """))
        self.assertEqual((job.codes, list(job.ranks)), ([0], [0]))
        self.assertEqual(job.ranks[0].logs(), [])

    def test_launcher_with_a_nodes_rank_is_no_rank_but_what_it_starts_is(self):
        with tempfile.TemporaryDirectory() as folder:
            launcher = os.path.join(folder, "torchrun")
            with open(launcher, "w") as f:
                f.write("import os, subprocess, sys\n"
                        "os.environ.update(RANK='5', WORLD_SIZE='8')\n"
                        "subprocess.run([sys.executable, '-c', 'pass'], check=True)\n")
            job = Job([launcher])
        self.assertEqual((job.codes, list(job.ranks)), ([0], [5]))

    def test_two_copies_on_the_path_start_once(self):
        with tempfile.TemporaryDirectory() as folder:
            ours = os.path.join(BUILD, "agent", "python")
            shutil.copy(os.path.join(ours, "sitecustomize.py"), folder)
            job = Job(code("import logging; logging.error('once')"),
                      PYTHONPATH=ours + os.pathsep + folder)
        self.assertEqual((job.codes, list(job.ranks)), ([0], [0]))
        self.assertEqual(len(job.ranks[0].logs()), 1)

    def test_module_as_script(self):
        job = Job(["-m", "this"], LANG="C")
        self.assertEqual(job.codes, [0])
        self.assertIn("Beautiful is better than ugly.", job.out[0])
        self.nothing_lost(job, 1)

    def test_shadowed_sitecustomize_runs_and_its_error_is_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(BUILD, "agent", "python") + os.pathsep + folder
            with open(os.path.join(folder, "sitecustomize.py"), "w") as f:
                f.write("import sys\nsys.shadowed = __name__\nVALUE = 5\n")
            job = Job(code("import sys, sitecustomize as s; print(sys.shadowed, s.VALUE)"),
                      PYTHONPATH=path)
            self.assertEqual((job.out, job.err), (["sitecustomize 5\n"], [""]))
            self.nothing_lost(job, 1)
            with open(os.path.join(folder, "sitecustomize.py"), "w") as f:
                f.write("raise RuntimeError('mine')\n")
            job = Job(code("print('on')"), PYTHONPATH=path)
            plain = Job(code("print('on')"), PYTHONPATH=folder, traced=False)
            self.assertEqual((job.codes, job.out, job.err), (plain.codes, plain.out, plain.err))
            self.nothing_lost(job, 1)

    def test_secrets_are_told_as_set_and_credentials_are_cut_out(self):
        job = Job(code("pass"), NCCL_API_TOKEN="hunter2", TORCH_HUB="https://me:pw@host/x",
                  HOME_SECRET="hunter3", NCCL_DEBUG="WARN")
        env = job.ranks[0].records("meta.env")[0]
        self.assertEqual((env["NCCL_API_TOKEN"], env["TORCH_HUB"], env["NCCL_DEBUG"]),
                         ("(set)", "https://***@host/x", "WARN"))
        self.assertNotIn("hunter", str([t.text for t in job.ranks[0].texts]))

    def test_large_environment_is_split_into_records_that_fit(self):
        many = {"NCCL_TEST_%03d" % i: "v" * 60 for i in range(200)}
        job = Job(code("pass"), **many)
        told = {}
        for fields in job.ranks[0].records("meta.env"):
            told.update(fields)
        self.assertEqual({k: v for k, v in told.items() if k.startswith("NCCL_TEST")}, many)


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
        BUILD = os.path.abspath(sys.argv.pop(1))
    if not os.path.exists(os.path.join(BUILD, "agent", "python", "_syncline_probe.abi3.so")):
        sys.exit("test_bootstrap: no build in %s; run `meson setup b && ninja -C b`" % BUILD)
    unittest.main()
