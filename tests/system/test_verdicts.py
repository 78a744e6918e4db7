"""What rules say of cases with a known cause, and that they say nothing of the healthy twins.

tests/cases/verdicts holds pairs: NAME.json, whose `expect` names the class and what the culprit must be (`notices`:
the classes of all notices), and NAME.healthy.json, the nearest job in which nothing is wrong. Each is played as it is and with noise."""
import glob
import json
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
CASES = os.path.join(ROOT, "tests", "cases", "verdicts")
NOISES = ([], ["--noise", "0.05", "--seed", "1"], ["--noise", "0.05", "--seed", "2"])
if "SYNCLINE_QUICK" in os.environ:
    NOISES = NOISES[1:2]


def verdicts(path, options):
    """All, the first first."""
    with tempfile.TemporaryDirectory() as folder:
        db = os.path.join(folder, "c.db")
        played = subprocess.run([SYNCLINE, "sim", path, "--db", db, *options], text=True, capture_output=True, timeout=120)
        if played.returncode != 0:
            raise AssertionError(played.stderr)
        said = subprocess.run([SYNCLINE, "report", db, "--json"], text=True, capture_output=True, timeout=120)
        return json.loads(said.stdout)["verdicts"]


class Verdicts(unittest.TestCase):
    maxDiff = None

    def check(self, path, options):
        with open(path) as f:
            want = json.load(f)["expect"]
        told = verdicts(path, options)
        got = [v for v in told if v["severity"] != "notice"]
        if "notices" in want:
            self.assertEqual([v["class"] for v in told if v["severity"] == "notice"], want["notices"])
        if want["verdict"] is None:
            self.assertEqual([(v["class"], v["sentence"]) for v in got], [])
            return
        self.assertEqual([v["class"] for v in got], [want["verdict"]])
        for key in ("ranks", "group", "call", "step", "host", "stage"):
            if key in want:
                self.assertEqual(got[0]["culprit"][key], want[key], key)
        for key in ("severity", "confidence"):
            if key in want:
                self.assertEqual(got[0][key], want[key], key)
        self.assertTrue(got[0]["sentence"])


def add(path):
    name = os.path.basename(path)[:-len(".json")]

    def test(self):
        for options in NOISES:
            with self.subTest(options=options):
                self.check(path, options)
    setattr(Verdicts, "test_" + name.replace(".", "_"), test)


for case in sorted(glob.glob(os.path.join(CASES, "*.json"))):
    add(case)

if __name__ == "__main__":
    unittest.main()
