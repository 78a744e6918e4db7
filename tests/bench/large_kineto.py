#!/usr/bin/env python3
"""A profiler's file of any size, out of a small one: its events again and again, later each time, with correlations
and ids of their own. As the profiler writes it: the same spaces, the same members around the list.

  large_kineto.py FILE.json.gz MEGABYTES OUT.json [RANK]"""
import gzip
import json
import re
import sys


def main(source, megabytes, out, rank=None):
    with (gzip.open if source.endswith(".gz") else open)(source, "rt", encoding="utf-8") as f:
        text = f.read()
    begin = text.index('"traceEvents"')
    begin = text.index("[", begin) + 1
    decoder, at, events = json.JSONDecoder(), begin, []
    while True:
        at = re.compile(r"[\s,]*").match(text, at).end()
        if text[at] == "]":
            break
        v, end = decoder.raw_decode(text, at)
        events.append((v, text[at:end]))
        at = end
    head, tail = text[:begin], text[at:]
    if rank is not None:
        head, tail = (re.sub(r'("rank": )\d+', rf"\g<1>{rank}", t) for t in (head, tail))
    stamps = [v["ts"] for v, _ in events if v.get("ph") == "X"]
    length = max(stamps) - min(stamps) + 1000
    numbers = [v["args"][k] for v, _ in events for k in ("correlation", "External id") if k in v.get("args", {})]
    span = max(numbers) + 1
    steps = [int(m.group(1)) for v, _ in events if (m := re.match(r"ProfilerStep#(\d+)", v.get("name", "")))]
    n_steps = max(steps) - min(steps) + 1

    def moved(t, n):
        t = re.sub(r'("ts": )([0-9]+)', lambda m: m[1] + str(int(m[2]) + int(length) * n), t)
        t = re.sub(r'("(?:correlation|External id)": )([0-9]+)', lambda m: m[1] + str(int(m[2]) + span * n), t)
        return re.sub(r"(ProfilerStep#)([0-9]+)", lambda m: m[1] + str(int(m[2]) + n_steps * n), t)

    with open(out, "w", encoding="utf-8") as f:
        f.write(head)
        n, size = 0, 0
        while size < megabytes * 1e6:
            part = ",\n  ".join(moved(t, n) for v, t in events if n == 0 or v.get("ph") != "M")
            f.write(("" if n == 0 else ",\n  ") + part)
            size, n = size + len(part), n + 1
        f.write("\n" + tail)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3], *sys.argv[4:])
