"""A small valid file of each format that is imported, for tests that damage it.

A new format adds one function: its name in the table of outcomes, a name of a file, and what is in it. kind says what
else can be done to it than to any bytes: "json" has numbers and texts to put others in place of, "lines" has lines,
"pickle" is a pickle, "bytes" is anything."""
import json
import random

import test_nccl_files
from test_import import profile, timeline

SAMPLES = []


class Sample:
    def __init__(self, format_name, file_name, kind, content):
        self.format, self.file, self.kind, self.content = format_name, file_name, kind, content

    def __repr__(self):
        return self.format


def sample(format_name, file_name, kind):
    def add(make):
        SAMPLES.append(Sample(format_name, file_name, kind, make()))
        return make
    return add


@sample("Kineto trace", "rank0.json", "json")
def kineto():
    return json.dumps({**profile(0, 900, 0), "host_name": "trainer-a", "username": "alice"}).encode()


@sample("StragglerAnalysis timeline", "timeline.json", "json")
def straggler():
    return json.dumps(timeline(300)).encode()


@sample("NCCL log", "nccl.log", "lines")
def nccl_log():
    return test_nccl_files.mixed_log(test_nccl_files.Job(random.Random(2), 1, 2), (2, 28), graph=True).encode()


@sample("NCCL inspector", "trainer-a-pid700.log", "json")
def nccl_inspector():
    t = 1752867229000000
    return "".join(test_nccl_files.record(0, k, 500, (t + 900 * k, t + 900 * k + 500), "trainer-a", "v4.2")
                   for k in range(20)).encode()


@sample("NCCL topology", "topo.xml", "bytes")
def nccl_topology():
    return test_nccl_files.SYSTEM.encode()
