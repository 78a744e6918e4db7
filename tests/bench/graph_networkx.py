"""The peer of bench_large: the same step's graph built in plain Python with networkx, and its longest path.

    b/tests/bench/large_dump 64 8 8 200 > step.csv && /usr/bin/python3 tests/bench/graph_networkx.py step.csv

Nodes: the begin and the end of each call of each rank, and one join a call; edges: what a rank does between two calls,
begin -> join, join -> end: two a member. The weights are the measured times, a join's begins at its last member. Reading the file
is not in the time. Needs python3-networkx.
"""
import collections
import csv
import resource
import sys
import time

import networkx


def read(path):
    with open(path) as f:
        return [(int(rank), group, int(n), int(begin), int(end), send == "1") for rank, group, n, begin, end, send in csv.reader(f)]


def build(calls):
    """The graph, and where it begins and ends."""
    last_begin = collections.defaultdict(int)
    for rank, group, n, begin, end, send in calls:
        last_begin[group, n] = max(last_begin[group, n], begin)
    g = networkx.DiGraph()
    start = min(begin for _, _, _, begin, _, _ in calls)
    before = None
    for i, (rank, group, n, begin, end, send) in enumerate(calls):
        if before is not None and calls[before][0] == rank:
            g.add_edge((before, 1), (i, 0), weight=begin - calls[before][4])
        else:
            g.add_edge("start", (i, 0), weight=begin - start)
        g.add_edge((i, 0), (group, n), weight=0)
        # Who sends goes on by itself; who receives, and everybody else, when all have come.
        if send:
            g.add_edge((i, 0), (i, 1), weight=end - begin)
        else:
            g.add_edge((group, n), (i, 1), weight=max(0, end - max(begin, last_begin[group, n])))
        before = i
    for i, call in enumerate(calls):
        if i + 1 == len(calls) or calls[i + 1][0] != call[0]:
            g.add_edge((i, 1), "end", weight=0)
    return g


def blame(g, path, calls):
    """Own time of each rank on the path."""
    held = collections.Counter()
    for a, b in zip(path, path[1:]):
        if isinstance(b, tuple) and isinstance(b[0], int) and b[1] == 0:
            held[calls[b[0]][0]] += g[a][b]["weight"]
    return held


def main():
    calls = read(sys.argv[1])
    a = time.monotonic()
    g = build(calls)
    b = time.monotonic()
    path = networkx.dag_longest_path(g, weight="weight")
    held = blame(g, path, calls)
    c = time.monotonic()
    length = sum(g[x][y]["weight"] for x, y in zip(path, path[1:]))
    print(f"{len(calls)} calls of ranks: {g.number_of_nodes()} nodes, {g.number_of_edges()} edges; built in {b - a:.2f} s, "
          f"path and blame in {c - b:.2f} s; {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    print(f"the path takes {length / 1e9:.6f} s over {len(path)} nodes; most of it on rank {held.most_common(1)[0][0]}: "
          f"{held.most_common(1)[0][1] / 1e6:.1f} ms")


if __name__ == "__main__":
    main()
