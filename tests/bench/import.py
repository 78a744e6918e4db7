"""An import of a job's profiles, end to end, against reading them with pandas in the same run.

Usage: import.py BUILD_FOLDER [RANKS [MEGABYTES [plain,lean,none]]]. 8 ranks of 100 MB unless told; `import.py b 1 1000 none`
is one file of 1 GB without pandas. The files are made of the recordings beside the checkout (kineto_large.py) in a
temporary folder (TMPDIR). Bytes are of the files, seconds of processor and clock of the process alone, memory its
resident set at most.
"""
import json
import os
import subprocess
import sys
import tempfile

import kineto_large

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"


# A process begins with what its parent had, so a small one starts it.
STARTER = """
import os, sys, time
began = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(status, time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)
"""


def run(*words):
    """What it printed, seconds by the clock, of processor, and MB at most."""
    r = subprocess.run([PYTHON, "-S", "-E", "-c", STARTER, *words], stdout=subprocess.PIPE, text=True, check=True)
    out, _, told = r.stdout.rstrip().rpartition("\n")
    status, clock, cpu, mb = told.split()
    if status != "0":
        sys.exit(f"import.py: {words[0]} ended with {status}")
    return out, float(clock), float(cpu), float(mb)


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "b"
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    megabytes = float(sys.argv[3]) if len(sys.argv) > 3 else 100
    peers = (sys.argv[4] if len(sys.argv) > 4 else "plain,lean").split(",")
    if not os.path.exists(kineto_large.RECORDED[0]):
        sys.exit("import.py: skipped: ../shared/data/h200 is not beside the checkout")
    with tempfile.TemporaryDirectory() as folder:
        files = kineto_large.make(folder, ranks, megabytes)
        size = sum(map(os.path.getsize, files)) / 1e6
        for path in files: # none of the two reads a cold disk
            subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)
        db = os.path.join(folder, "job.db")
        out, clock, cpu, mb = run(os.path.join(build, "syncline"), "import", *files, "--db", db, "--json")
        events = sum(i["events"] for i in json.loads(out)["inputs"])
        print(f"{ranks} files of {size / ranks:.0f} MB, {events} events: {clock:.2f} s = {size / clock:.0f} MB/s, "
              f"{cpu:.2f} s of processor = {size / cpu:.0f} MB/s a core, {mb:.0f} MB at most, "
              f"database {os.path.getsize(db) / 1e6:.1f} MB")
        for how in peers:
            if how == "none":
                continue
            _, peer, peer_cpu, mb = run(PYTHON, os.path.join(HERE, "import_pandas.py"), how, *files)
            print(f"pandas, {how}: {peer:.2f} s, {peer_cpu:.2f} s of processor, {mb:.0f} MB at most: "
                  f"{peer / clock:.1f} times as long, {peer_cpu / cpu:.1f} times the processor")


if __name__ == "__main__":
    main()
