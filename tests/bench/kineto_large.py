"""Kineto traces of any size, made of a recorded one.

The recording's steps are repeated with times, correlations, External ids and step numbers moved on, as one long run would
have them; every rank beyond the recorded ones is the first of them again on a clock of its own. So all ranks have the same
collectives, which fit together, and what is in an event (its keys, its order, its spaces) is as the profiler wrote it.

Usage: kineto_large.py FOLDER RANKS MEGABYTES [RECORDING…]. The recordings are of ranks 0, 1, …; without them those of
../shared/data/h200 beside the checkout.
"""
import gzip
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
H200 = os.path.join(os.path.dirname(ROOT), "shared", "data", "h200")
RECORDED = [os.path.join(H200, f"kineto_ddp_rank{r}.json.gz") for r in (0, 1)]
MOVES = re.compile(r'("ts": )(\d+)\.(\d{3})|("(?:correlation|External id|id)": ?)(\d+)|(ProfilerStep#)(\d+)')
ID_STEP = 10_000_000


class Recording:
    """The text of a file around and between what a repetition moves."""

    def __init__(self, path, ranks):
        with gzip.open(path, "rt", encoding="utf-8") as f:
            text = f.read()
        text = text.replace('"world_size": 2', f'"world_size": {ranks}').replace('"pg_size": 2', f'"pg_size": {ranks}')
        text = text.replace('"Group size": 2', f'"Group size": {ranks}')
        text = text.replace("[0, 1]", "[" + ", ".join(map(str, range(ranks))) + "]")
        begin = re.search(r'"traceEvents": \[\n', text).end()
        end = text.rindex("\n  ],")
        self.head, self.tail = text[:begin], text[end:]
        events = text[begin:end]
        self.pieces, self.moved, at = [], [], 0
        for m in MOVES.finditer(events):
            kind = 0 if m[1] else 1 if m[4] else 2
            value = int(m[2]) * 1000 + int(m[3]) if m[1] else int(m[5] or m[7])
            self.pieces.append(events[at:m.start()] + (m[1] or m[4] or m[6]))
            self.moved.append((kind, value))
            at = m.end()
        self.last = events[at:]
        steps = sorted({v for k, v in self.moved if k == 2})
        self.n_steps = len(steps)
        begins = {}
        for m in re.finditer(r'"cat": "user_annotation", "name": "ProfilerStep#(\d+)"[^{}]*?"ts": (\d+)\.(\d{3})[^{}]*?"dur": '
                             r'(\d+)\.(\d{3})', events):
            begins[int(m[1])] = (int(m[2]) * 1000 + int(m[3]), int(m[4]) * 1000 + int(m[5]))
        first, last = begins[steps[0]], begins[steps[-1]]
        self.span_ns = last[0] + last[1] - first[0]

    def repeat(self, n, ahead_ns, span_ns):
        out = []
        for piece, (kind, value) in zip(self.pieces, self.moved):
            out.append(piece)
            if kind == 0:
                ns = value + n * span_ns + ahead_ns
                out.append("%d.%03d" % (ns // 1000, ns % 1000))
            else:
                out.append(str(value + n * (ID_STEP if kind == 1 else self.n_steps)))
        out.append(self.last)
        return "".join(out)


def make(folder, ranks, megabytes, recordings=RECORDED):
    """The files' paths."""
    recorded = [Recording(p, ranks) for p in recordings[:ranks]]
    # Steps of all ranks go on together: the longest of the recordings, and a gap.
    span_ns = max(r.span_ns for r in recorded) + 1_000_000
    paths = []
    for rank in range(ranks):
        rec = recorded[rank] if rank < len(recorded) else recorded[0]
        path = os.path.join(folder, f"rank{rank}.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(re.sub(r'"rank": \d+', f'"rank": {rank}', rec.head, count=1))
            n = 0
            while n == 0 or f.tell() < megabytes * 1_000_000:
                f.write((",\n" if n else "") + rec.repeat(n, 1000 * rank, span_ns))
                n += 1
            f.write(rec.tail)
        paths.append(path)
    return paths


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    for made in make(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:] or RECORDED):
        print(made, os.path.getsize(made))
