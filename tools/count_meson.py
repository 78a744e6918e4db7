"""Counts of one `meson test`: prints "PASSED FAILED SKIPPED", and what failed to stderr.

cmocka programs and unittest modules count their own tests; a program that dies,
or finds nothing to count, counts as one.
"""
import json
import re
import sys


def counts(test):
    text = (test.get("stdout") or "") + (test.get("stderr") or "")
    n_ok = len(re.findall(r"^\[ {7}OK \] ", text, re.M))
    n_failed = len(set(re.findall(r"^\[  FAILED  \] (\w+)(?=$|\s*$)", text, re.M)))
    n_skipped = len(set(re.findall(r"^\[  SKIPPED \] (\w+)\s*$", text, re.M)))
    ran = re.search(r"^Ran (\d+) tests? in .*\n\n(?:OK|FAILED)(.*)$", text, re.M)
    if ran:
        said = dict((k, int(v)) for k, v in re.findall(r"([a-z ]+)=(\d+)", ran[2]))
        n_failed += said.get("failures", 0) + said.get("errors", 0)
        n_skipped += said.get("skipped", 0)
        n_ok += max(0, int(ran[1]) - n_failed - n_skipped)
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    if test["result"] == "SKIP" and n_ok + n_skipped == 0:
        return 0, 0, 1
    if good and n_ok + n_skipped + n_failed == 0:
        n_ok = 1
    if not good and n_failed == 0:
        n_failed = 1
    return n_ok, n_failed, n_skipped


def main(path):
    total = [0, 0, 0]
    with open(path, encoding="utf-8") as f:
        for line in f:
            test = json.loads(line)
            n = counts(test)
            total = [a + b for a, b in zip(total, n)]
            if n[1]:
                sys.stderr.write("--- %s: %s\n" % (test["name"], test["result"]))
                sys.stderr.write((test.get("stdout") or "")[-6000:] + (test.get("stderr") or "")[-6000:] + "\n")
    print(*total)


main(sys.argv[1])
