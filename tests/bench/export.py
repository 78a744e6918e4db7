#!/usr/bin/env python3
"""Times `syncline export` on a catalogue of a million events: export.py SYNCLINE [CALLS]

A hundred steps of 16 ranks: calls of one group and kernels between them. Prints seconds, bytes and the largest memory of each format."""
import json
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import catalogue

RANKS, STEPS, CHUNK = 16, 100, 1008
KERNEL_BEGIN, KERNEL_END = 33, 34


def column(width, base, values):
    body = b"".join(v.to_bytes(width, "little") for v in values) if width else b""
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<BBHIQ", width, 0, 0, len(body) if width else 0, base) + body


def chunk(events):
    """events: (t, kind, launch, step). The layout of proto/chunk.h; every column against its base."""
    t0 = events[0][0]
    head = struct.pack("<IHHQqq", 0x314B4353, 1, len(events), 1 << KERNEL_BEGIN | 1 << KERNEL_END, t0, events[-1][0])
    return head + b"".join([column(8, t0, [e[0] - t0 for e in events]), column(1, KERNEL_BEGIN, [e[1] - KERNEL_BEGIN for e in events]),
                            column(0, 0, []), column(0, 1, []), column(4, 0, [e[3] for e in events]),
                            column(4, 0, [e[2] for e in events]), column(0, 0, [])])


def main():
    syncline, n_calls = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 13000
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        path = os.path.join(folder, "run.db")
        db = catalogue.create(path, world=RANKS, seen=RANKS, steps=STEPS)
        db.execute("DELETE FROM raw_collective")
        db.execute("DELETE FROM raw_chunk")
        db.execute("UPDATE raw_host SET same_clock = 1, offset_ns = ?", (catalogue.START_NS,))
        step_ns, per_step = 50 * catalogue.MS, n_calls // STEPS
        call_ns = step_ns // per_step
        for i in range(per_step * STEPS):
            begin = i * call_ns
            last = i % RANKS
            arrivals = [[r, call_ns // 8 if r == last else r * 100, call_ns // 4, 25_000] for r in range(RANKS)]
            catalogue.put(db, "raw_collective", group_id=1, seq=i, op=1, dtype=1, bytes=4096, step=i // per_step,
                          first_arrival_ns=catalogue.START_NS + begin, last_arrival_ns=catalogue.START_NS + begin + call_ns // 8,
                          end_ns=catalogue.START_NS + begin + call_ns // 4, skew_ns=call_ns // 8, skew_err_ns=50_000, last_rank=last,
                          decided=1, mismatch=0, n_expected=RANKS, n_seen=RANKS, arrivals=json.dumps(arrivals))
        for r in range(RANKS):
            events = []
            for i in range(per_step * STEPS):
                at = i * call_ns + call_ns // 4
                for k in range(2):
                    events += [(at + k * call_ns // 4, KERNEL_BEGIN, 2 * i + k + 1, i // per_step),
                               (at + (k + 1) * call_ns // 4, KERNEL_END, 2 * i + k + 1, i // per_step)]
            for first in range(0, len(events), CHUNK):
                part = events[first:first + CHUNK]
                catalogue.put(db, "raw_chunk", process_id=r + 1, ring=0, first_index=first, n_events=len(part),
                              kinds=1 << KERNEL_BEGIN | 1 << KERNEL_END, host_t_min_ns=part[0][0], host_t_max_ns=part[-1][0], data=chunk(part))
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        for form in ("perfetto", "chrome", "csv"):
            out = os.path.join(folder, "out." + form)
            begin = time.monotonic()
            p = subprocess.Popen([syncline, "export", path, "--all", "--force", "--format", form, "-o", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            text, said = p.stdout.read().decode(), p.stderr.read().decode()
            _, status, usage = os.wait4(p.pid, 0)
            took = time.monotonic() - begin
            if status != 0:
                sys.exit(said)
            n = int(text.split()[0])
            print(f"{form}: {n} events in {took:.2f} s ({n / took / 1e6:.2f} M/s, {usage.ru_utime + usage.ru_stime:.2f} s of a core), "
                  f"{os.path.getsize(out) / 1e6:.0f} MB, {usage.ru_maxrss / 1024:.0f} MB of memory. {said.strip()}")


if __name__ == "__main__":
    main()
