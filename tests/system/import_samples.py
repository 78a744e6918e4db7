"""A small valid file of each format that is imported, for tests that damage it.

A new format adds one function: its name in the table of outcomes, a name of a file, and what is in it. kind says what
else can be done to it than to any bytes: "json" has numbers and texts to put others in place of, "lines" has lines,
"pickle" is a pickle, "bytes" is anything."""
import gzip
import json
import os

import test_megatron
import test_nccl_files
from test_import import ROOT, profile, timeline

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


@sample("MegatronApp timeline", "spans.json", "json")
def spans():
    return json.dumps(test_megatron.timeline(2, 4, test_megatron.even(100), test_megatron.even(200))).encode()


@sample("Megatron log", "train.log", "lines")
def megatron():
    return test_megatron.log_lines(4, 4, 40.0, 100.0)


@sample("NCCL inspector", "a-pid700.log", "lines")
def inspector():
    return "".join(test_nccl_files.record(0, i, 500 + i) for i in range(20)).encode()


def of_corpus(name):
    with open(os.path.join(ROOT, "tests", "fuzz", "corpus", name), "rb") as f:
        return f.read()


@sample("execution trace", "et.json", "json")
def execution_trace():
    return of_corpus("et/chakra")


@sample("NCCL log", "nccl_rank0.log", "lines")
def nccl_log():
    with gzip.open(os.path.join(ROOT, "tests", "data", "import", "nccl_debug_rank0.log.gz")) as f:
        return f.read()


@sample("NCCL profiler trace", "trace-rank0.json", "bytes")
def nccl_profiler():
    return of_corpus("nccl_profiler/kernels")


@sample("NCCL topology", "topo.xml", "bytes")
def nccl_topology():
    with open(os.path.join(ROOT, "tests", "data", "import", "topo.xml"), "rb") as f:
        return f.read()


@sample("PyTorch memory snapshot", "snapshot_rank0.pickle", "pickle")
def memory_snapshot():
    return of_corpus("memory_snapshot/small")
