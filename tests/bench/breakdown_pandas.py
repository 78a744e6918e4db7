"""Idle, compute and communication of each rank, read and reckoned with pandas as a person would.

Usage: breakdown_pandas.py FILE…; one line of JSON a rank, and the seconds of all on the last one.
"""
import json
import sys
import time

import pandas as pd


def union(spans):
    """Begins and ends of what the spans cover together."""
    spans = spans.sort_values("ts")
    reach = spans["end"].cummax().shift()
    island = (spans["ts"] > reach).cumsum()
    merged = spans.groupby(island).agg(ts=("ts", "min"), end=("end", "max"))
    return merged["ts"], merged["end"]


def length(spans):
    begin, end = union(spans)
    return float((end - begin).sum())


def breakdown(path):
    with open(path, encoding="utf-8") as f:
        trace = json.load(f)
    df = pd.DataFrame(trace["traceEvents"])
    args = df["args"]
    for name in ("stream", "correlation", "Collective name"):
        df[name] = args.apply(lambda a, name=name: a.get(name) if isinstance(a, dict) else None)
    df["ts"] = pd.to_numeric(df["ts"])
    df["dur"] = pd.to_numeric(df["dur"]).fillna(0)
    df["end"] = df["ts"] + df["dur"]
    device = df[df["cat"].isin(["kernel", "gpu_memcpy", "gpu_memset"])]
    comm = device["name"].str.contains("nccl", case=False)
    steps = df[(df["cat"] == "user_annotation") & df["name"].str.startswith("ProfilerStep")]
    host = df[df["cat"].isin(["cuda_runtime", "cuda_driver"])]
    launched = device.merge(host[["correlation", "ts"]], on="correlation", how="left", suffixes=("", "_launch"))
    span = device["end"].max() - device["ts"].min()
    compute, talk, busy = length(device[~comm]), length(device[comm]), length(device)
    return {"rank": trace["distributedInfo"]["rank"], "steps": len(steps), "calls": int(comm.sum()), "span_us": float(span),
            "idle_us": float(span) - busy, "compute_us": compute, "communication_us": talk,
            "overlap_us": compute + talk - busy, "delay_us": float((launched["ts"] - launched["ts_launch"]).mean())}


def main():
    began = time.perf_counter()
    for path in sys.argv[1:]:
        print(json.dumps(breakdown(path)), flush=True)
    print(json.dumps({"seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main()
