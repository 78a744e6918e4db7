"""The proof as one command: tests/cases/score over all cases, drawn healthy jobs and planted faults.

SHARE is what the points must reach; a wrong verdict is never allowed."""
import json
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCORE = os.path.join(ROOT, "tests", "cases", "score")
SHARE = 1
QUICK = "SYNCLINE_QUICK" in os.environ
SEEDS = 1 if QUICK else 20
N_HEALTHY = 6 if QUICK else 40
N_PLANTED = 10 if QUICK else 60


def score(*arguments):
    done = subprocess.run([sys.executable, SCORE, "--json", *arguments], text=True, capture_output=True)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        raise AssertionError(f"score ended with {done.returncode}: {done.stderr}")


def misses(told):
    return [(row["case"], row["want"], row["worst"]) for table in told["tables"] for row in table["cases"]
            if row["points"] < row["of"] or row["wrong"]]


class Score(unittest.TestCase):
    maxDiff = None

    def test_every_case_with_twenty_seeds(self):
        status, told = score("--min", str(SHARE), "--seeds", str(SEEDS))
        self.assertEqual(told["wrong"], 0, misses(told))
        self.assertEqual(status, 0, misses(told))

    def test_drawn_jobs_in_which_nothing_is_wrong(self):
        status, told = score("--drawn-only", "--healthy", str(N_HEALTHY))
        self.assertEqual(misses(told), [])
        self.assertEqual(status, 0)

    def test_drawn_jobs_with_a_planted_fault(self):
        status, told = score("--drawn-only", "--planted", str(N_PLANTED))
        self.assertEqual([m for m in misses(told) if m[2]["points"] < 2], [])
        self.assertEqual(status, 0)

    def test_a_wrong_name_of_a_case_is_wrong_usage(self):
        done = subprocess.run([sys.executable, SCORE, "--noise", "much"], capture_output=True)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
