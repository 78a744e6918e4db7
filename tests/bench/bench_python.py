"""What an event costs from Python, beside a call that does nothing.

Usage: bench_python.py [BUILD_FOLDER]. Prints nanoseconds a call: the median and the 99th
percentile over batches of 100 calls, with the loop's own cost taken off.
"""
import os
import struct
import sys
import tempfile
import time

BATCH, N = 100, 2000


def measure(body, setup, names):
    """Batches are unrolled tenfold, so that the loop weighs little and can be subtracted."""
    source = ["def run(n):", "    clock = perf_counter_ns", "    out = []"]
    source += ["    " + line for line in setup]
    source += ["    for _ in range(n):", "        drain()", "        t = clock()",
               "        for _ in range(%d):" % (BATCH // 10)]
    source += ["            " + body] * 10
    source += ["        out.append(clock() - t)", "    return out"]
    exec("\n".join(source), names)
    names["run"](100)
    return sorted(names["run"](N))


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "b"
    sys.path.insert(0, os.path.join(build, "agent", "python"))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        os.environ["SYNCLINE_DIR"] = directory
        import _syncline_probe as probe
        if not probe.start():
            sys.exit("bench_python: the probe is off: " + probe.stats()["reason"])
        drain = drainer(probe.stats()["file"])
        group = probe.group("bench")
        cases = (
            ("loop alone", "pass", []),
            ("empty METH_FASTCALL call", "f()", ["f = probe.nop"]),
            ("empty call, 5 arguments", "f(64, 0, 0, 1, 2)", ["f = probe.nop"]),
            ("level()", "f()", ["f = probe.level"]),
            ("tick()", "f()", ["f = probe.tick"]),
            ("emit(), 5 arguments", "f(64, 0, 0, 1, 2)", ["f = probe.emit"]),
            ("phase_begin()", "f(2)", ["f = probe.phase_begin"]),
            ("coll_begin()", "f(group, 257, 4096, True)", ["f = probe.coll_begin"]),
            ("coll_end()", "f(group, 257, token, 4096)",
             ["f = probe.coll_end", "token = 1 << 32"]),
            ("bucket_ready()", "f(0, group, 1, 4096)", ["f = probe.bucket_ready"]),
        )
        base = None
        print("%-28s %9s %9s" % ("ns a call", "p50", "p99"))
        for name, body, setup in cases:
            times = measure(body, setup, {"probe": probe, "group": group, "drain": drain,
                                          "perf_counter_ns": time.perf_counter_ns})
            p50, p99 = times[N // 2] / BATCH, times[N * 99 // 100] / BATCH
            if base is None:
                base = p50
                print("%-28s %9.1f %9.1f" % (name, p50, p99))
            else:
                print("%-28s %9.1f %9.1f" % (name, p50 - base, p99 - base))
        lost = probe.stats()["n_dropped"]
        if lost:
            sys.exit("bench_python: %d events found no room; the figures are of drops" % lost)


def drainer(path):
    """Empties this thread's ring as the agent would, outside the measured time."""
    import mmap
    f = open(path, "r+b", buffering=0)
    memory = mmap.mmap(f.fileno(), 0)
    at, = struct.unpack_from("<Q", memory, 64)

    def drain():
        memory[at + 64:at + 72] = memory[at:at + 8]

    return drain


if __name__ == "__main__":
    main()
