"""The whole path with real parts: torch DDP on gloo, agent, collector, SQLite.

Truth comes from the training script itself (spine_train.py): counts, loss curve, the step in which
a rank was planted slow or killed. Run by run-tests; SYNCLINE_BUILD names the build folder.
"""
import json
import os
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
SCRIPT = os.path.join(HERE, "spine_train.py")
PYTHON = "/usr/bin/python3"
WORLD = 4


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SYNCLINE_")}
    env.update(OMP_NUM_THREADS="1", **more)
    return env


def train(out, steps, *options, probe=True, db=None, timeout=240):
    """One training of four ranks; returns the finished process."""
    os.makedirs(out, exist_ok=True)
    command = [SYNCLINE, "run"]
    if db:
        command += ["--db", db]
    command += ["--nproc", str(WORLD), "--", PYTHON, SCRIPT, out, str(steps), *options]
    env = environment() if probe else environment(SYNCLINE_OFF="1")
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=timeout)


def truth(out, rank):
    with open(os.path.join(out, f"rank{rank}.json")) as f:
        return json.load(f)


def open_db(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    return db


def one(db, sql, *args):
    return db.execute(sql, args).fetchone()[0]


class HealthyRun(unittest.TestCase):
    STEPS = 60

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.out = os.path.join(cls.dir.name, "out")
        cls.path = os.path.join(cls.dir.name, "run.db")
        cls.run_result = train(cls.out, cls.STEPS, db=cls.path)
        if cls.run_result.returncode != 0:
            raise AssertionError(cls.run_result.stdout)
        cls.db = open_db(cls.path)
        cls.truth = truth(cls.out, 0)

    @classmethod
    def tearDownClass(cls):
        cls.db.close()
        cls.dir.cleanup()

    def test_every_step_of_every_rank_is_there(self):
        rows = self.db.execute("select step, count(distinct rank) n from rank_step group by step").fetchall()
        full = [r["step"] for r in rows if r["n"] == WORLD]
        self.assertEqual(full[:self.STEPS], list(range(self.STEPS)))
        self.assertLessEqual(len(rows), self.STEPS + 1)  # what follows the last optimizer step
        self.assertEqual(one(self.db, "select count(*) from step where step < ? and complete", self.STEPS), self.STEPS)

    def test_phases_are_measured_in_every_step(self):
        for phase in ("fwd_ns", "bwd_ns", "opt_ns", "input_wait_ns"):
            n = one(self.db, f"select count(*) from rank_step where step < ? and {phase} > 0", self.STEPS)
            self.assertEqual(n, self.STEPS * WORLD, phase)
        bad = one(self.db, "select count(*) from rank_step where step < ? and "
                  "(fwd_ns + bwd_ns + opt_ns + input_wait_ns > dur_ns or self_ns + exposed_comm_ns > dur_ns + 1000)", self.STEPS)
        self.assertEqual(bad, 0)

    def test_step_ends_lie_where_the_script_saw_them(self):
        """The script stamps unix time after each step; the next step's begin on the fleet's time
        line must lie before it and not long before."""
        for rank in range(WORLD):
            marks = truth(self.out, rank)["marks_unix_ns"]
            rows = self.db.execute("select step, begin_ns, dur_ns from rank_step where rank = ? and step < ? order by step",
                                   (rank, self.STEPS)).fetchall()
            late = [marks[r["step"]] - (r["begin_ns"] + r["dur_ns"]) for r in rows]
            self.assertGreater(min(late), -2_000_000, "an aligned step ends after the script says it did")
            self.assertLess(sorted(late)[len(late) // 2], 200_000_000)

    def test_buckets_are_complete_and_in_causal_order(self):
        n = self.truth["buckets"]
        self.assertGreaterEqual(n, 2, "the script must have several buckets")
        counts = self.db.execute("select step, rank, count(*) n, sum(bytes) b from bucket_stage group by step, rank").fetchall()
        self.assertEqual(len(counts), self.STEPS * WORLD)
        for r in counts:
            self.assertEqual(r["n"], n if r["step"] > 0 else self.truth["first_buckets"], dict(r))
            self.assertEqual(r["b"], self.truth["parameter_bytes"], dict(r))
        disorder = one(self.db, "select count(*) from bucket_stage where not "
                       "(ready_ns <= submitted_ns and submitted_ns <= reduced_ns and reduced_ns <= applied_ns)")
        self.assertEqual(disorder, 0)

    def test_collectives_are_joined_over_all_ranks(self):
        # a loss all-reduce a step and a bucket all-reduce a bucket; the barrier ends it
        expected = self.STEPS + (self.STEPS - 1) * self.truth["buckets"] + self.truth["first_buckets"]
        n = one(self.db, "select count(*) from collective where op = 'all_reduce'")
        self.assertEqual(n, expected)
        self.assertEqual(one(self.db, "select count(*) from collective where n_seen <> ? or mismatch", WORLD), 0)
        self.assertEqual(one(self.db, "select count(*) from collective where op = 'barrier'"), 1)
        # Sequence numbers have no gap, and no rank left before the last one entered.
        self.assertEqual(one(self.db, "select max(seq) - min(seq) + 1 - count(*) from collective"), 0)
        # (The root of a broadcast waits for nobody.)
        early = one(self.db, "select count(*) from collective_rank r join collective c using (comm_id, seq) "
                    "where c.op in ('all_reduce', 'all_gather', 'barrier') and "
                    "r.arrival_ns + r.dur_ns + r.arrival_err_ns < c.last_arrival_ns - r.arrival_err_ns")
        self.assertEqual(early, 0)

    def test_bucket_and_collective_name_each_other(self):
        apart = one(self.db, "select count(*) from bucket_stage b left join collective_rank r "
                    "on r.seq = b.seq and r.rank = b.rank where r.seq is null or r.step <> b.step")
        self.assertEqual(apart, 0)

    def test_nobody_is_named(self):
        loud = self.db.execute("select * from finding where severity <> 'notice'").fetchall()
        self.assertEqual([dict(r) for r in loud], [])

    def test_nothing_was_lost_and_all_left_in_order(self):
        self.assertEqual(one(self.db, "select coalesce(sum(n), 0) from drop_count"), 0)
        states = [r["state"] for r in self.db.execute("select state from rank_info order by rank")]
        self.assertEqual(states, ["left"] * WORLD)

    def test_the_environment_is_known_for_every_rank(self):
        n = one(self.db, "select count(distinct rank) from env_key where key like '%torch%'")
        self.assertEqual(n, WORLD)

    def test_the_loss_curve_is_the_same_to_the_bit_without_the_probe(self):
        out = os.path.join(self.dir.name, "bare")
        result = train(out, self.STEPS, probe=False, db=os.path.join(self.dir.name, "bare.db"))
        self.assertEqual(result.returncode, 0, result.stdout)
        for rank in range(WORLD):
            self.assertEqual(truth(out, rank)["losses"], truth(self.out, rank)["losses"])


class SlowRank(unittest.TestCase):
    STEPS, RANK, FROM = 260, 2, 60

    def test_the_planted_rank_is_named_and_only_from_its_step_on(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "run.db")
            result = train(os.path.join(d, "out"), self.STEPS, f"slow={self.RANK}:{self.FROM}:60", db=path)
            self.assertEqual(result.returncode, 0, result.stdout)
            db = open_db(path)
            found = [dict(r) for r in db.execute("select * from finding where severity <> 'notice'")]
            self.assertEqual(len(found), 1, found)
            v = found[0]
            self.assertEqual(v["class"], "slow.fixed_rank")
            self.assertEqual(json.loads(v["culprit"])["ranks"], [self.RANK])
            self.assertLessEqual(abs(v["first_step"] - self.FROM), 5, v)
            self.assertIn(v["confidence"], ("certain", "likely"))
            self.assertGreater(v["margin_ns"], v["error_ns"])
            self.assertGreater(v["cost_ratio"], 0.05)
            self.assertTrue(json.loads(v["evidence"]))
            db.close()
            report = subprocess.run([SYNCLINE, "report", path, "--json"], stdout=subprocess.PIPE, text=True)
            self.assertEqual(report.returncode, 1)
            told = [x for x in json.loads(report.stdout)["verdicts"] if x["severity"] != "notice"]
            self.assertEqual([x["culprit"]["ranks"] for x in told], [[self.RANK]])


class Services:
    """A collector and an agent that the test starts and kills itself."""

    def __init__(self, folder):
        self.folder = folder
        self.db = os.path.join(folder, "run.db")
        self.url = "ipc://" + os.path.join(folder, "c.sock")
        self.shm = tempfile.mkdtemp(prefix="syncline-test-", dir="/dev/shm")
        self.run_id = "spine"
        self.collector = self.agent = None

    def start_collector(self):
        r, w = os.pipe()
        self.collector = subprocess.Popen(
            [os.path.join(BUILD, "syncline-collector"), "--db", self.db, "--listen", self.url, "--http",
             "127.0.0.1:0", "--run", self.run_id, "--ready-fd", str(w)], pass_fds=[w], env=environment())
        os.close(w)
        with os.fdopen(r) as f:
            return json.loads(f.readline())

    def start_agent(self):
        self.agent = subprocess.Popen(
            [os.path.join(BUILD, "syncline-agent"), "--collector", self.url, "--dir", self.shm, "--run", self.run_id,
             "--spool", os.path.join(self.folder, "spool")], env=environment())

    def start_training(self, out, steps, *options):
        os.makedirs(out, exist_ok=True)
        port = str(20000 + os.getpid() % 20000)
        ranks = []
        for rank in range(WORLD):
            env = environment(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(WORLD), LOCAL_WORLD_SIZE=str(WORLD),
                              MASTER_ADDR="127.0.0.1", MASTER_PORT=port, SYNCLINE_DIR=self.shm, SYNCLINE_RUN=self.run_id,
                              PYTHONPATH=os.path.join(BUILD, "agent", "python"))
            ranks.append(subprocess.Popen([PYTHON, SCRIPT, out, str(steps), *options], env=env,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return ranks

    def stop(self):
        for p in (self.agent, self.collector):
            if p and p.poll() is None:
                p.terminate()
                try:
                    p.wait(20)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.wait()
        subprocess.run(["rm", "-rf", self.shm])


def wait_for(what, seconds, message):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return
        time.sleep(0.05)
    raise AssertionError(message)


def committed_steps(path):
    try:
        db = open_db(path)
        n = one(db, "select coalesce(max(step), -1) from step")
        db.close()
        return n
    except sqlite3.Error:
        return -1


class CollectorDies(unittest.TestCase):
    STEPS = 120

    def test_no_acknowledged_event_is_missing_and_none_is_there_twice(self):
        with tempfile.TemporaryDirectory() as d:
            s = Services(d)
            try:
                s.start_collector()
                s.start_agent()
                out = os.path.join(d, "out")
                ranks = s.start_training(out, self.STEPS, "pace=20")
                for target in (15, 50):
                    wait_for(lambda: committed_steps(s.db) >= target, 90, f"step {target} never arrived")
                    s.collector.send_signal(signal.SIGKILL)
                    s.collector.wait()
                    time.sleep(0.3)
                    s.start_collector()
                self.assertEqual([p.wait(120) for p in ranks], [0] * WORLD, "training was disturbed")
                s.agent.wait(60)
            finally:
                s.stop()
            db = open_db(s.db)
            # Raw events: every ring's indexes are covered exactly once, from the first on.
            for ring in db.execute("select process_id, ring, min(first_index) a, sum(n_events) n, "
                                   "max(first_index + n_events) z from raw_chunk group by process_id, ring").fetchall():
                self.assertEqual((ring["a"], ring["n"]), (0, ring["z"]), dict(ring))
            self.assertEqual(db.execute("select * from drop_count where n > 0").fetchall(), [])
            self.assertEqual(one(db, "select count(*) from rank_step where step < ?", self.STEPS), self.STEPS * WORLD)
            t = truth(out, 0)
            self.assertEqual(one(db, "select count(*) from collective where op = 'all_reduce' and n_seen = ?", WORLD),
                             self.STEPS + (self.STEPS - 1) * t["buckets"] + t["first_buckets"])
            db.close()


class RankDies(unittest.TestCase):
    def test_its_last_events_are_in_the_store(self):
        with tempfile.TemporaryDirectory() as d:
            s = Services(d)
            try:
                s.start_collector()
                s.start_agent()
                out = os.path.join(d, "out")
                ranks = s.start_training(out, 200, "pace=10", "die=1:40")
                ranks[1].wait(90)
                wait_for(lambda: self.state(s.db) == "died", 10, "the death was not noticed")
                for p in ranks:
                    if p.poll() is None:
                        p.kill()
                    p.wait()
                s.agent.wait(60)
            finally:
                s.stop()
            with open(os.path.join(out, "died.json")) as f:
                died = json.load(f)
            db = open_db(s.db)
            # It fetched the data of step 40 and died before its forward: steps 0..39 are whole and the
            # last event is at most a moment older than the death.
            self.assertEqual(one(db, "select count(*) from rank_step where rank = 1 and step < 40"), 40)
            process, at = db.execute("select process_id, state_at_ns from rank_info where rank = 1").fetchone()
            last = one(db, "select max(host_t_max_ns) from raw_chunk where process_id = ?", process)
            fleet_minus_raw = one(db, "select fleet_minus_raw_ns from raw_run")
            self.assertLess(abs(died["at_unix_ns"] - (last + fleet_minus_raw)), 100_000_000)
            self.assertLess(at - died["at_unix_ns"], 2_000_000_000, "noticed within two seconds")
            db.close()

    @staticmethod
    def state(path):
        try:
            db = open_db(path)
            row = db.execute("select state from rank_info where rank = 1").fetchone()
            db.close()
            return row and row[0]
        except sqlite3.Error:
            return None


if __name__ == "__main__":
    unittest.main()
