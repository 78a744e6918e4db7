"""A script that nobody wrote for syncline, through torchrun, with no change.

Debian's torchrun needs `-r 1 -t 1 --log_dir`: its defaults are lost under Python 3.11.
"""
import json
import os
import socket
import sqlite3
import subprocess
import tempfile
import unittest

from test_cli import SYNCLINE, environment

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
RANKS = 2
STEPS, ACCUMULATE, EVAL_EVERY = 30, 4, 10


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def train(folder, prefix=()):
    os.makedirs(folder)
    command = [*prefix, PYTHON, "-m", "torch.distributed.run", "-r", "1", "-t", "1", "--log_dir",
               os.path.join(folder, "log"), "--nproc_per_node", str(RANKS), "--master_port", str(free_port()),
               os.path.join(HERE, "plain_train.py"), folder]
    r = subprocess.run(command, env=environment(OMP_NUM_THREADS="1"), text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, timeout=240)
    if r.returncode != 0:
        raise AssertionError(r.stdout)
    ranks = []
    for rank in range(RANKS):
        with open(os.path.join(folder, f"rank{rank}.json"), encoding="ascii") as f:
            ranks.append(json.load(f))
    return r.stdout, ranks


class SecondScript(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = os.path.join(cls.folder.name, "run.db")
        _, cls.bare = train(os.path.join(cls.folder.name, "bare"))
        cls.said, cls.traced = train(os.path.join(cls.folder.name, "traced"), [SYNCLINE, "run", "--db", cls.path, "--"])
        cls.db = sqlite3.connect(f"file:{cls.path}?mode=ro", uri=True)
        cls.addClassCleanup(cls.db.close)

    def one(self, sql):
        return self.db.execute(sql).fetchone()[0]

    def test_losses_and_evaluations_are_bit_identical(self):
        self.assertEqual(self.traced, self.bare)

    def test_every_optimizer_step_is_one_step(self):
        self.assertEqual(self.one(f"select count(*) from rank_step where step < {STEPS}"), STEPS * RANKS)
        self.assertLessEqual(self.one("select max(step) from rank_step"), STEPS)
        self.assertEqual(self.one(f"select count(*) from rank_step where step < {STEPS} and not "
                                  "(fwd_ns > 0 and bwd_ns > 0 and opt_ns > 0)"), 0)

    def test_evaluation_is_not_training(self):
        """What follows optimizer.step() belongs to the next step; the last one has no end."""
        rows = self.db.execute("select distinct step from rank_step where eval_ns > 0 order by step").fetchall()
        self.assertEqual([r[0] for r in rows], list(range(EVAL_EVERY, STEPS, EVAL_EVERY)))

    def test_buckets_are_reduced_only_in_the_last_micro_batch(self):
        sums = self.db.execute(f"select step, rank, sum(bytes), count(distinct micro) from bucket_stage where step < {STEPS} "
                               "group by step, rank").fetchall()
        self.assertEqual(len(sums), STEPS * RANKS)
        self.assertEqual({s[2:] for s in sums}, {(self.bare[0]["parameter_bytes"], 1)})

    def test_collectives_are_joined_on_both_ranks(self):
        self.assertEqual(self.one(f"select count(*) from collective where n_seen <> {RANKS} or mismatch"), 0)
        evals = STEPS // EVAL_EVERY
        buckets = self.one(f"select count(*) from bucket_stage where rank = 0 and step < {STEPS}")
        self.assertEqual(self.one("select count(*) from collective where op = 'all_reduce'"), buckets + evals)

    def test_nothing_is_lost_and_nobody_is_named(self):
        self.assertEqual(self.one("select coalesce(sum(n), 0) from drop_count"), 0)
        self.assertEqual(self.db.execute("select sentence from finding where severity <> 'notice'").fetchall(), [])

    def test_the_run_says_where_to_look(self):
        self.assertIn("syncline: dashboard http://127.0.0.1:", self.said)
        self.assertIn(f"Database {self.path}", self.said)


if __name__ == "__main__":
    unittest.main()
