"""unittest with counts: run_unittest.py FOLDER COUNTS [PATTERN…]

Runs every test_*.py of FOLDER (or those that match a pattern), writes
"PASSED FAILED SKIPPED" to the file COUNTS. A class whose set-up fails counts
as one failure.
"""
import fnmatch
import os
import sys
import unittest


def main(folder, counts, *patterns):
    sys.path.insert(0, folder)
    loader, suite = unittest.TestLoader(), unittest.TestSuite()
    for name in sorted(os.listdir(folder)):
        if not fnmatch.fnmatch(name, "test_*.py"):
            continue
        if patterns and not any(fnmatch.fnmatch(name, p) for p in patterns):
            continue
        suite.addTests(loader.loadTestsFromName(name[:-3]))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    n_failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    n_failed_in_setup = sum(1 for test, _ in result.errors if not isinstance(test, unittest.TestCase))
    n_skipped = len(result.skipped)
    n_passed = max(0, result.testsRun - (n_failed - n_failed_in_setup) - n_skipped)
    with open(counts, "w", encoding="ascii") as f:
        print(n_passed, n_failed, n_skipped, file=f)
    return 1 if n_failed else 0


sys.exit(main(*sys.argv[1:]))
