#!/usr/bin/env python3
"""Cuts of a recorded memory snapshot: the allocator's end and the last events of its history, without what is not read.

make_memory.py IN.pickle OUT.pickle.gz [EVENTS]"""
import gzip
import os
import pickle
import sys

AGAIN = {}


def frames_of(frames):
    """Only frames of programs, as one list where they are alike: pickle then writes them once."""
    own = [f for f in frames if "/torch/" not in f["filename"]][:2] or frames[:1]
    key = tuple((f["filename"], f["line"], f["name"]) for f in own)
    return AGAIN.setdefault(key, [dict(f, filename="/job/" + os.path.basename(f["filename"])) for f in own])


def main():
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 1 << 30
    with open(sys.argv[1], "rb") as f:
        tree = pickle.load(f)
    for trace in tree["device_traces"]:
        del trace[:-n]
        for event in trace:
            event["frames"] = frames_of(event.get("frames", []))
            for key in ("compile_context", "user_metadata"):
                event.pop(key, None)
    for segment in tree["segments"]:
        segment["frames"] = frames_of(segment["frames"]) if segment["frames"] else []
        for block in segment["blocks"]:
            block["frames"] = frames_of(block["frames"]) if block["frames"] else []
    tree.pop("external_annotations", None)
    with gzip.GzipFile(sys.argv[2], "wb", mtime=0) as f:
        f.write(pickle.dumps(tree, 4))


main()
