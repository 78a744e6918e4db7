"""A small valid file of each format that is imported, for tests that damage it.

A new format adds one function: its name in the table of outcomes, a name of a file, and what is in it. kind says what
else can be done to it than to any bytes: "json" has numbers and texts to put others in place of, "lines" has lines,
"pickle" is a pickle, "bytes" is anything. Where a cut leaves a file that is whole for all that anybody can know,
whole_at tells."""
import gzip
import io
import json
import os
import pickle
import tarfile
import zipfile

import test_flight
import test_megatron
import test_nccl_files
from test_import import ROOT, profile, timeline

SAMPLES = []


class Sample:
    def __init__(self, format_name, file_name, kind, content, whole_at=None):
        self.format, self.file, self.kind, self.content = format_name, file_name, kind, content
        self.whole_at = whole_at or (lambda n: kind == "lines" and content[:n].endswith(b"\n"))

    def __repr__(self):
        return f"{self.format} ({self.file})"


def sample(format_name, file_name, kind, whole_at=None):
    def add(make):
        SAMPLES.append(Sample(format_name, file_name, kind, make(), whole_at))
        return make
    return add


@sample("Kineto trace", "rank0.json", "json")
def kineto():
    return json.dumps({**profile(0, 900, 0), "host_name": "trainer-a", "username": "alice"}).encode()


@sample("PyTorch autograd profile", "worker0.json", "json")
def autograd():
    with open(os.path.join(ROOT, "tests", "data", "import", "autograd_worker0.json"), "rb") as f:
        return f.read()


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


@sample("NCCL topology", "graph.xml", "bytes")
def nccl_graph():
    with open(os.path.join(ROOT, "tests", "data", "import", "graph.xml"), "rb") as f:
        return f.read()


def dump(rank):
    return test_flight.job(2, 8).call(0, state="started").dump(rank)


@sample("PyTorch Flight Recorder dump", "nccl_trace_rank_0", "pickle")
def flight():
    return pickle.dumps(dump(0), 2)


@sample("PyTorch Flight Recorder dump", "old_trace_rank_0", "pickle")
def flight_protocol_0():
    return pickle.dumps(dump(0), 0)


@sample("PyTorch Flight Recorder dump", "dump_rank0.json", "json")
def flight_json():
    return json.dumps(dump(0)).encode()


@sample("execution trace", "workload.json", "json")
def et_workload():
    return of_corpus("et/workload")


def message(*fields):
    """Of protobuf: numbers and texts by their fields' numbers."""
    out = b""
    for number, v in fields:
        if isinstance(v, int):
            out += varint(number << 3) + varint(v)
        else:
            out += varint(number << 3 | 2) + varint(len(v)) + v
    return out


def varint(v):
    out = b""
    while v > 127:
        out, v = out + bytes((v & 127 | 128,)), v >> 7
    return out + bytes((v,))


def et_messages():
    out = [message((1, b"0.0.4"))]
    out += [message((1, i), (2, b"layer%d" % i), (3, 7 if i % 3 == 2 else 4), *([(5, varint(i - 1))] if i else []), (7, 10 + i))
            for i in range(40)]
    return [varint(len(m)) + m for m in out]


@sample("execution trace", "rank.0.et", "bytes", whole_at=lambda n: n in [len(b"".join(et_messages()[:i])) for i in range(60)])
def et_proto():
    return b"".join(et_messages())


# ---- archives: not formats, but what one of them is in ----

def in_tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for s in (SAMPLES[0], SAMPLES[3]):
            i = tarfile.TarInfo(s.file)
            i.size = len(s.content)
            t.addfile(i, io.BytesIO(s.content))
    return out.getvalue()


def in_zip():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for s in (SAMPLES[0], SAMPLES[3]):
            z.writestr(s.file, s.content)
    return out.getvalue()


ARCHIVES = [Sample("tar", "all.tar", "bytes", in_tar()), Sample("zip", "all.zip", "bytes", in_zip())]
