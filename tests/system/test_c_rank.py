"""The spine without PyTorch: ranks in C, the agent, the collector, SQLite. Because nothing here is
Python inside a rank, the same test runs in the sanitizer builds, guest included.

SYNCLINE_BUILD names the build folder.
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
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(HERE, "..", "..", "b")))
RANK = os.path.join(BUILD, "tests", "system", "probe_rank")
WORLD = 3
STEPS = 300


class CRanks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.shm = tempfile.mkdtemp(prefix="syncline-test-", dir="/dev/shm")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SYNCLINE_")}
        self.env["SYNCLINE_DIR"] = self.shm
        self.url = f"ipc://{self.folder.name}/c.sock"
        self.db = os.path.join(self.folder.name, "run.db")
        self.log = open(os.path.join(self.folder.name, "log"), "w+")
        self.started = []

    def tearDown(self):
        for p in self.started:
            if p.poll() is None:
                p.kill()
            p.wait()
            for pipe in (p.stdin, p.stdout):
                if pipe:
                    pipe.close()
        subprocess.run(["rm", "-rf", self.shm], check=False)
        self.log.close()
        self.folder.cleanup()

    def start(self, name, *arguments, **more):
        path = name if os.path.isabs(name) else os.path.join(BUILD, name)
        p = subprocess.Popen([path, *arguments], env=self.env, stderr=self.log, **more)
        self.started.append(p)
        return p

    def collector(self):
        r, w = os.pipe()
        p = self.start("syncline-collector", "--db", self.db, "--listen", self.url, "--http", "127.0.0.1:0",
                       "--run", "c", "--ready-fd", str(w), pass_fds=[w])
        os.close(w)
        with os.fdopen(r) as f:
            self.assertTrue(f.readline(), self.told())
        return p

    def agent(self):
        return self.start("syncline-agent", "--collector", self.url, "--dir", self.shm, "--run", "c",
                          "--spool", os.path.join(self.folder.name, "spool"))

    def ranks(self, steps=STEPS, restart=0):
        return [self.start(RANK, "--hold", "--steps", str(steps), "--rank", str(r), "--world", str(WORLD),
                           "--restart", str(restart),
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE) for r in range(WORLD)]

    def told(self):
        self.log.flush()
        with open(self.log.name) as f:
            return f.read()

    def go(self, p):
        p.stdin.write(b"\n")
        p.stdin.flush()

    def in_store(self, query):
        try:
            db = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
            n = db.execute(query).fetchone()[0]
            db.close()
            return n
        except sqlite3.Error:
            return 0

    def steps_in_store(self):
        return self.in_store("select count(*) from rank_step")

    def wait_for(self, what, message, seconds=120):
        end = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), end, message + "\n" + self.told())
            time.sleep(0.05)

    def finish(self, collector, agent, ranks):
        for p in ranks:
            p.stdin.close()
            self.assertEqual(p.wait(60), 0, self.told())
        self.assertEqual(agent.wait(60), 0, self.told())
        collector.send_signal(signal.SIGTERM)
        self.assertEqual(collector.wait(60), 0, self.told())
        self.assertNotIn("Sanitizer", self.told())
        self.assertNotIn("runtime error", self.told())

    def test_all_that_the_ranks_did_is_in_the_store(self):
        collector, ranks = self.collector(), self.ranks()
        agent = self.agent()
        for p in ranks:
            self.go(p)
        self.wait_for(lambda: self.steps_in_store() >= STEPS * WORLD, "the steps never arrived")
        self.finish(collector, agent, ranks)
        self.check()

    def test_a_collector_that_dies_in_between_costs_nothing(self):
        collector, ranks = self.collector(), self.ranks()
        agent = self.agent()
        self.go(ranks[0])
        self.wait_for(lambda: self.raw_events() > 0, "no event ever arrived")
        collector.send_signal(signal.SIGKILL)
        collector.wait()
        for p in ranks[1:]:
            self.go(p)
        collector = self.collector()
        self.wait_for(lambda: self.steps_in_store() >= STEPS * WORLD, "the steps never arrived")
        self.finish(collector, agent, ranks)
        self.check()

    def test_two_lives_met_at_once_are_numbered_one_after_the_other(self):
        first, second = 20, 30
        for p in (dead := self.ranks(first)):
            self.go(p)
            while b"worked" not in p.stdout.readline():
                self.assertIsNone(p.poll(), self.told())
        for p in dead:
            p.kill()
            p.wait()
        ranks = self.ranks(second, 1)
        for p in ranks:
            self.go(p)
            while b"worked" not in p.stdout.readline():
                self.assertIsNone(p.poll(), self.told())
        collector, agent = self.collector(), self.agent()
        self.wait_for(lambda: self.steps_in_store() >= (first + second) * WORLD, "the steps never arrived")
        self.finish(collector, agent, ranks)
        db = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
        steps = db.execute("select step, begin_ns, complete, n_ranks from step order by step").fetchall()
        self.assertEqual([s[0] for s in steps], list(range(first + second)))
        self.assertEqual([s[1] for s in steps], sorted(s[1] for s in steps))
        self.assertEqual({s[2:] for s in steps}, {(1, WORLD)})
        self.assertEqual(db.execute("select min(coverage) from rank_step").fetchone()[0], 1)
        self.assertEqual(db.execute("select coalesce(sum(n), 0) from drop_count").fetchone()[0], 0)
        db.close()

    def raw_events(self):
        return self.in_store("select coalesce(sum(n_events), 0) from raw_chunk")

    def check(self):
        db = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
        one = lambda q: db.execute(q).fetchone()[0]  # noqa: E731
        self.assertEqual(one("select count(*) from rank_step"), STEPS * WORLD)
        self.assertEqual(one(f"select count(*) from step where complete and n_ranks = {WORLD}"), STEPS)
        self.assertEqual(one(f"select count(*) from collective where n_seen = {WORLD} and not mismatch"), STEPS)
        # a step is two marks, eight phase marks and a collective's two
        self.assertEqual(one("select sum(n_events) from raw_chunk"), STEPS * WORLD * 12)
        for first, n, last in db.execute("select min(first_index), sum(n_events), max(first_index + n_events) "
                                         "from raw_chunk group by process_id, ring"):
            self.assertEqual((first, n), (0, last))
        self.assertEqual(one("select coalesce(sum(n), 0) from drop_count"), 0)
        self.assertEqual([r[0] for r in db.execute("select state from rank_info order by rank")], ["left"] * WORLD)
        self.assertEqual(json.loads(one("select ranks from raw_group")) if one("select ranks_known from raw_group") else
                         list(range(WORLD)), list(range(WORLD)))
        db.close()


if __name__ == "__main__":
    unittest.main()
