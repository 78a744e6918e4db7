#!/usr/bin/env python3
"""Names of people and machines in files of every format: none is in the database, unless they are kept.

Addresses and people whose home a path is in are known anywhere. A machine's name is known where some file tells it as
one: then it is gone from all of them. So a file of each format is imported alone, and all of them at once."""
import gzip
import io
import json
import os
import pickle
import tarfile
import unittest

import import_samples
import test_megatron
import test_nccl_files
from test_import import Folder, call, profile, timeline

USER, HOST, DOMAIN, ADDRESS = NAMES = ("alice", "trainer-a", "corp.example", "10.1.2.3")
FQDN = f"{HOST}.{DOMAIN}"
SOURCE = f"/home/{USER}/x.py"
ALL = f"{SOURCE}(12): step on {FQDN} at {ADDRESS}"


def kineto(rank):
    v = profile(rank, 900, 0)
    v.update(host_name=FQDN, username=USER, trace_name=f"/home/{USER}/log/{FQDN}.pt.trace.json")
    for e in v["traceEvents"]:
        if e["name"] == "gemm":
            e["name"] = ALL
        if "args" in e and "Process Group Description" in e["args"]:
            e["args"]["Process Group Description"] = f"data of {HOST}"
    v["traceEvents"].append({"ph": "X", "cat": "python_function", "name": f"{SOURCE}(30): main", "pid": 9, "tid": 9,
                             "ts": 1000, "dur": 60000, "args": {"Python id": 1, "Python thread": 0}})
    v["traceEvents"].append({"ph": "X", "cat": "user_annotation", "name": ALL, "pid": 9, "tid": 9, "ts": 51000, "dur": 500})
    return json.dumps(v).encode()


def flight(rank):
    v = import_samples.dump(rank)
    for e in v["entries"]:
        e["thread_name"] = f"{USER}-loader@{FQDN}"
        e["frames"] = [{"name": "step", "filename": SOURCE, "line": 12}, {"name": f"on_{HOST}", "filename": f"//{FQDN}/x.py", "line": 1}]
        e["process_group"] = ("0", f"group of {FQDN} at {ADDRESS}")
    for g in v["pg_config"].values():
        g["desc"] = f"group of {FQDN} at {ADDRESS}"
    return v


def nccl_log():
    with gzip.open(os.path.join(test_nccl_files.OURS, "nccl_debug_rank0.log.gz"), "rt") as f:
        text = f.read()
    text = text.replace("vm:", f"{FQDN}:").replace("192.0.2.2", ADDRESS).replace("/tmp/o/", f"/home/{USER}/")
    return (text + f"{FQDN}:740:740 [0] NCCL WARN Call to connect to {ADDRESS}<41000> failed : Connection refused, by {SOURCE}\n"
            f"{FQDN}:740:740 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to {HOST}\n").encode()


def megatron():
    text = test_megatron.log_lines(4, 4, 40.0, 100.0).decode()
    return (f"{FQDN}: cmd = python {SOURCE} --load /home/{USER}/ckpt --master-addr {ADDRESS}\n"
            f"  load ............................................ /home/{USER}/ckpt\n" +
            text.replace("\n iteration", f"\n{FQDN}: [{ADDRESS}] iteration")).encode()


def et(text):
    return text.replace('"name": "t"', f'"name": "{ALL}"').replace('["0", "x"]', f'["0", "{FQDN}"]').encode()


def spans():
    v = test_megatron.timeline(2, 4, test_megatron.even(100), test_megatron.even(200))
    for e in v:
        e["args"]["host"] = FQDN
        if e["name"] == "reduce":
            e["name"] = f"reduce {ALL}"
    return json.dumps(v).encode()


def straggler():
    return json.dumps(timeline(300) + [{"name": ALL, "pid": 0, "tid": 4, "ts": 1000, "dur": 10, "ph": "X", "args": {"step": 3}}]).encode()


def proto():
    m = import_samples.message
    nodes = [m((1, b"0.0.4")), m((1, 0), (2, ALL.encode()), (3, 4), (7, 10)), m((1, 1), (2, ALL.encode()), (3, 7), (5, b"\0"), (7, 9))]
    return b"".join(import_samples.varint(len(n)) + n for n in nodes)


def topology():
    with open(os.path.join(test_nccl_files.OURS, "topo.xml"), encoding="utf-8") as f:
        return f.read().replace('name="eth0"', f'name="{HOST}"').encode()


def graph():
    with open(os.path.join(test_nccl_files.OURS, "graph.xml"), "rb") as f:
        return f.read()


def profiler():
    return import_samples.nccl_profiler().replace(b'"AllReduce"', b'"AllReduce %s"' % ALL.encode())


def in_tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        content = kineto(0)
        i = tarfile.TarInfo(f"home/{USER}/{FQDN}/rank0.json")
        i.size = len(content)
        i.uname = USER
        t.addfile(i, io.BytesIO(content))
    return out.getvalue()


def files():
    """Name and content, and the names that are in a database that keeps them."""
    chakra = import_samples.of_corpus("et/chakra").decode()
    return {
        "Kineto trace": (f"{FQDN}_4711.1700000000.pt.trace.json", kineto(0), NAMES),
        "Kineto trace, packed": ("of_10.1.2.3.json.gz", gzip.compress(kineto(1)), NAMES),
        "Flight Recorder pickle": ("nccl_trace_rank_0", pickle.dumps(flight(0), 2), NAMES),
        "Flight Recorder JSON": ("trace_rank_1.json", json.dumps(flight(1)).encode(), NAMES),
        "NCCL log": (f"nccl.{FQDN}.log", nccl_log(), NAMES),
        "NCCL inspector": (f"{HOST}-pid700.log", "".join(test_nccl_files.record(0, i, 500 + i, host=FQDN) for i in range(20)).encode(),
                           (USER, HOST)),
        "NCCL profiler trace": (f"trace-{FQDN}-rank0.json", profiler(), (USER, HOST, DOMAIN)),
        "NCCL topology": (f"topo-{FQDN}.xml", topology(), (USER, HOST, DOMAIN)),
        "NCCL graph": (f"graph-{FQDN}.xml", graph(), (USER, HOST, DOMAIN)),
        "Megatron log": (f"train.{FQDN}.log", megatron(), (USER, HOST, DOMAIN)),
        "MegatronApp timeline": (f"spans-{FQDN}.json", spans(), (USER, HOST, DOMAIN)),
        "StragglerAnalysis timeline": (f"timeline-{FQDN}.json", straggler(), (USER, HOST, DOMAIN)),
        "execution trace": (f"et-{FQDN}_0.json", et(chakra), NAMES),
        "Chakra trace": (f"{FQDN}.1.et", proto(), NAMES),
        "an archive": (f"{FQDN}.tgz", in_tar(), NAMES),
    }


TELL_HOSTS = ("Kineto trace", "Kineto trace, packed", "NCCL log", "NCCL inspector", "an archive") # as such


class Names(Folder):
    def put(self, name, content):
        folder = os.path.join(self.dir, "home", USER, "traces")
        os.makedirs(folder, exist_ok=True)
        return self.file(os.path.join(folder, name), content)

    def found(self, *words, status=(0, )):
        """The names in the bytes of the database."""
        r = call("import", *words, "--db", self.db, "--force", "--json")
        self.assertIn(r.returncode, status, r.stdout + r.stderr)
        with open(self.db, "rb") as f:
            content = f.read().lower()
        places = {}
        for n in NAMES:
            if n.encode() in content:
                at = content.index(n.encode())
                places[n] = content[max(0, at - 80):at + 40]
        return places, json.loads(r.stdout)["inputs"]

    def test_each_format_alone(self):
        for what, (name, content, kept) in files().items():
            with self.subTest(what):
                path = self.put(name, content)
                found, inputs = self.found(path)
                self.assertEqual({n: v for n, v in found.items() if what in TELL_HOSTS or n in (USER, ADDRESS)}, {})
                self.assertEqual([i["state"] for i in inputs], ["read"])
                self.assertLessEqual(set(kept), set(self.found(path, "--keep-names")[0]))
                os.unlink(path)

    def test_a_folder_with_all(self):
        for name, content, _ in files().values():
            self.put(name, content)
        folder = os.path.join(self.dir, "home")
        found, inputs = self.found(folder, status=(0, 5))
        self.assertEqual(found, {})
        self.assertGreater(sum(i["ok"] for i in inputs), 9)
        self.assertEqual(set(self.found(folder, "--keep-names", status=(0, 5))[0]), set(NAMES))


if __name__ == "__main__":
    unittest.main()
