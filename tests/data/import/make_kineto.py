#!/usr/bin/env python3
"""Cuts recordings of two H200 (../shared/data/h200, free to copy) to a few hundred events: steps, collectives and the
longest work, each with its launch. `make_kineto.py FOLDER` writes kineto_*.json.gz beside itself."""
import gzip
import json
import os
import sys

LONGEST = 60  # kernels and copies beside those of collectives
KEPT_ARGS = {"External id", "correlation", "stream", "device", "Collective name", "In msg nelems", "Out msg nelems",
             "Group size", "dtype", "Process Group Name", "Process Group Description", "Process Group Ranks",
             "Global rank start", "Global rank stride"}
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
HOST = ("cuda_runtime", "cuda_driver")


def is_named(event):
    name = event.get("name", "")
    return name.startswith(("ProfilerStep#", "nccl:", "Optimizer.")) or name == "record_param_comms"


def cut(trace):
    spans = [e for e in trace["traceEvents"] if e.get("ph") == "X"]
    device = [e for e in spans if e.get("cat") in DEVICE]
    calls = [e for e in device if e["name"].startswith("nccl")]
    others = sorted((e for e in device if not e["name"].startswith("nccl")), key=lambda e: -e["dur"])[:LONGEST]
    kept = {id(e) for e in calls + others}
    launched = {e["args"]["correlation"] for e in calls + others}
    events = []
    for e in spans:
        launches = e.get("cat") in HOST and e["args"].get("correlation") in launched
        if id(e) in kept or launches or is_named(e):
            e["args"] = {k: v for k, v in e.get("args", {}).items() if k in KEPT_ARGS}
            events.append(e)
    trace["traceEvents"] = events
    del trace["deviceProperties"][1:], trace["traceName"]
    return trace


def main(folder):
    here = os.path.dirname(os.path.abspath(__file__))
    for name in sorted(os.listdir(folder)):
        if not name.startswith("kineto_"):
            continue
        with gzip.open(os.path.join(folder, name)) as f:
            trace = cut(json.load(f))
        with open(os.path.join(here, name), "wb") as f:
            f.write(gzip.compress(json.dumps(trace, separators=(",", ":")).encode(), 9, mtime=0))
        print(name, len(trace["traceEvents"]), "events")


if __name__ == "__main__":
    main(sys.argv[1])
