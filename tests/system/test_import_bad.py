#!/usr/bin/env python3
"""What a stranger or a full disk made of a trace: cut, flipped, packed to burst, nested without end. Of each format.

Whatever it is: the exit status is one that is documented, each file has an outcome, time and memory have a bound, and
there is no database or a whole one. Files of import_samples.py are damaged here, many at once for each call."""
import gzip
import json
import os
import pickle
import random
import re
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

from import_samples import SAMPLES
from test_import import SYNCLINE

with open(SYNCLINE, "rb") as program:
    SANITIZED = b"__asan_" in (content := program.read()) or b"__tsan_" in content
SLOWER = 10 if SANITIZED else 1
MAX_S = 30 * SLOWER # of one call; the machine does other things, too
MAX_RSS_KB = 250 << 10
QUICK = "SYNCLINE_QUICK" in os.environ # the same kinds of damage, fewer draws
BURST = (1 << 30) // (16 if SANITIZED else 1)
N_FLIPS, N_OTHERS, BATCH = (24, 8, 64) if QUICK else (200, 60, 64)
NUMBER = re.compile(rb"(?<=[:\[, ])-?\d+(?:\.\d+)?(?=[,\]} ])")
VALUES = (b"NaN", b"-Infinity", b"1e400", b"-1e400", b"1e-400", b"-0", b"-0.0", b"-1", b"0", b"99999999999999999999999",
          b"9223372036854775807", b"-9223372036854775808", b"1e18", b"4611686018427387904", b"null", b"true", b'"x"', b"[]",
          b"{}", b"0x10", b"+1", b"1.", b".5", b'"\\ud800"', b'"\xff\xfe"', b'"a\\u0000b"', b'"' + b"y" * 20000 + b'"')


# ---- how a file is damaged: name -> content ----

def cut(s):
    n = len(s.content)
    return {f"cut{p:02}-{s.file}": s.content[:n * p // 100] for p in range(1, 100, 7 if QUICK else 1)}


def flipped(s, n_files=N_FLIPS):
    draw = random.Random(5)
    out = {}
    for i in range(n_files):
        v = bytearray(s.content)
        for _ in range(draw.choice((1, 1, 2, 8, 64))):
            v[draw.randrange(len(v))] ^= 1 << draw.randrange(8)
        out[f"flip{i:03}-{s.file}"] = bytes(v)
    return out


def spliced(s):
    """Pieces doubled, dropped, moved, and bytes that are no text put in."""
    draw = random.Random(6)
    out = {}
    for i in range(N_OTHERS):
        a, b = sorted(draw.randrange(len(s.content)) for _ in range(2))
        b = min(b, a + 4000)
        piece = draw.choice((b"", s.content[a:b] * 2, bytes(draw.randrange(256) for _ in range(20)), b"\0" * 9, b"\xff\xfe\xc0\x80",
                             s.content[b:b + 500]))
        out[f"splice{i:02}-{s.file}"] = s.content[:a] + piece + s.content[b:]
    return out


def odd_json(s):
    """Numbers that are none, or none that a clock or a rank has; keys that are there twice."""
    draw = random.Random(7)
    places = list(NUMBER.finditer(s.content))
    out = {}
    for value_number, value in enumerate(VALUES):
        for n_places in (1, 5, len(places)):
            v, at = b"", 0
            for m in sorted(draw.sample(places, min(n_places, len(places))), key=lambda m: m.start()):
                v += s.content[at:m.start()] + value
                at = m.end()
            out[f"value{value_number:02}x{n_places}-{s.file}"] = v + s.content[at:]
    keys = list(re.finditer(rb'"[^"]{1,40}": ?', s.content))
    for i in range(N_OTHERS):
        m = draw.choice(keys)
        out[f"twice{i:02}-{s.file}"] = (s.content[:m.start()] + m.group() +
                                        draw.choice((b"1,", b'"b",', b"[1],", b"{},", b"null,")) + s.content[m.start():])
    return out


def packed(s):
    whole = gzip.compress(s.content, mtime=0)
    out = {f"packed{p:02}-{s.file}.gz": whole[:len(whole) * p // 100] for p in range(1, 100, 4)}
    draw = random.Random(8)
    for i in range(N_OTHERS):
        v = bytearray(whole)
        v[draw.randrange(len(v))] ^= 1 << draw.randrange(8)
        out[f"packedflip{i:02}-{s.file}.gz"] = bytes(v)
    out[f"tail-{s.file}.gz"] = whole + b"not gzip"
    out[f"many-{s.file}.gz"] = b"".join(gzip.compress(s.content[i:i + 100], mtime=0) for i in range(0, len(s.content), 100))
    out[f"nested-{s.file}.gz"] = gzip.compress(whole)
    return out


def many_times(piece, n_bytes):
    """n_bytes of the same, packed: members of gzip one behind the other."""
    block = piece * ((1 << 20) // len(piece))
    return gzip.compress(block, mtime=0) * (n_bytes // len(block))


def bursting(s):
    """What unpacks to a GiB, at a place where it may stand and where it may not."""
    head, tail = s.content[:1], s.content[1:]
    parts = {"spaces": (head, b" ", tail), "zeros": (head, b"\0", tail), "lines": (s.content, b"\n", b"")}
    if s.kind == "json":
        key = b'"x":' if head == b"{" else b""
        parts["text"] = (head + key + b'"', b"a", b'",' + tail)
        parts["escapes"] = (head + key + b'"', b"\\u00e9", b'",' + tail)
        parts["number"] = (head + key, b"1", b"," + tail)
        parts["brackets"] = (head + key, b"[", b"," + tail)
        parts["objects"] = (head + key, b'{"a":', b"," + tail)
        parts["commas"] = (head, b",", tail)
    if s.kind == "lines":
        parts["line"] = (b"", b"a", s.content)
        parts["again"] = (s.content, s.content[:s.content.index(b"\n") + 1], b"")
    return {f"{name}-{s.file}.gz": gzip.compress(a) + many_times(piece, BURST) + gzip.compress(b)
            for name, (a, piece, b) in parts.items()}


def deep(s):
    out = {}
    for name, piece in (("lists", b"["), ("objects", b'{"a":'), ("both", b'[{"traceEvents":')):
        out[f"deep-{name}.json"] = piece * 1000000
        if s.kind == "json":
            m = list(NUMBER.finditer(s.content))[7]
            out[f"deep-in-{name}.json"] = s.content[:m.start()] + piece * 1000000 + s.content[m.end():]
    return out


# ---- what must hold ----

class Bad(unittest.TestCase):
    def setUp(self):
        self._dir = tempfile.TemporaryDirectory()
        self.addCleanup(self._dir.cleanup)
        self.dir = self._dir.name

    def write(self, files):
        paths = []
        for name, content in files.items():
            paths.append(os.path.join(self.dir, name))
            with open(paths[-1], "wb") as f:
                f.write(content)
        return paths

    def call(self, paths):
        """One import; every claim that holds whatever is in the files. Returns its outcomes."""
        db = os.path.join(self.dir, "job.db")
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            p = subprocess.Popen([SYNCLINE, "import", *paths, "--db", db, "--json"], stdout=out, stderr=err)
            killer = threading.Timer(MAX_S, p.kill)
            killer.start()
            _, status, used = os.wait4(p.pid, 0)
            killer.cancel()
            p.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            said, complaint = out.read(), err.read().decode(errors="replace")
        what = [os.path.basename(path) for path in paths[:3]]
        self.assertIn(p.returncode, (0, 3, 5), f"{what}… after {time.monotonic() - began:.1f} s: {complaint[-3000:]}")
        self.assertNotRegex(complaint, "Sanitizer|runtime error")
        if not SANITIZED:
            self.assertLess(used.ru_maxrss, MAX_RSS_KB, what)
        v = json.loads(said)
        self.assertEqual([i["file"] for i in v["inputs"]], paths)
        for i in v["inputs"]:
            self.assertGreater(len(i["outcome"]), 1, i)
            self.assertIn(i["state"], ("read", "failed", "skipped"))
            self.assertEqual(i["ok"], i["state"] == "read")
        n_read = sum(i["ok"] for i in v["inputs"])
        self.assertEqual(p.returncode, 3 if n_read == 0 or v["error"] else 5 if v["failed"] else 0, v["error"])
        self.assertEqual([n for n in os.listdir(self.dir) if ".db" in n], [] if p.returncode == 3 else ["job.db"])
        if p.returncode != 3:
            with sqlite3.connect(db) as base:
                self.assertEqual(base.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
                self.assertEqual(base.execute("SELECT count(*) FROM input").fetchone(), (len(paths),))
            base.close()
            os.unlink(db)
        return v["inputs"]

    def all_of(self, make, batch=BATCH, samples=None):
        """Every damaged file of every format. Returns outcomes by sample."""
        got = {}
        for s in samples or SAMPLES:
            with self.subTest(sample=s):
                files = list(make(s).items())
                random.Random(9).shuffle(files) # another one is the first of its rank in each call
                for at in range(0, len(files), batch):
                    paths = self.write(dict(files[at:at + batch]))
                    got.setdefault(s, []).extend(self.call(paths))
                    for path in paths:
                        os.unlink(path)
        return got

    # ---- each format ----

    def test_the_sound_file_is_read(self):
        for s in SAMPLES:
            for name, content in ((s.file, s.content), (s.file + ".gz", gzip.compress(s.content)), ("rank0", s.content),
                                  ("rank0.png", s.content), ("rank0.gz", s.content), ("rank0.json", gzip.compress(s.content))):
                with self.subTest(format=s.format, name=name):
                    i, = self.call(self.write({name: content}))
                    self.assertEqual((i["format"], i["state"]), (s.format, "read"), i)

    def test_cut_off_at_each_percent(self):
        got = self.all_of(cut)
        for s in SAMPLES:
            whole = {f"cut{p:02}-{s.file}" for p in range(1, 100) if s.whole_at(len(s.content) * p // 100)}
            self.assertLess(len(whole), 30, s)
            ok = {os.path.basename(i["file"]) for i in got[s] if i["outcome"] == "ok"}
            self.assertEqual(ok - whole, set(), s)

    def test_bits_flipped(self):
        self.all_of(flipped)

    def test_bits_flipped_one_file_a_call(self):
        self.all_of(lambda s: flipped(s, 12), batch=1)

    def test_pieces_moved_and_doubled(self):
        self.all_of(spliced)

    def test_odd_values(self):
        self.all_of(odd_json, samples=[s for s in SAMPLES if s.kind == "json"])

    def test_odd_values_one_file_a_call(self):
        self.all_of(lambda s: dict(list(odd_json(s).items())[1:3 * len(VALUES):3]), batch=1,
                    samples=[s for s in SAMPLES if s.kind == "json"])

    def test_packed_and_damaged(self):
        self.all_of(packed)

    def test_packed_to_burst(self):
        self.all_of(bursting, batch=1)

    def test_deep(self):
        got = self.all_of(deep)
        self.assertEqual([i["file"] for files in got.values() for i in files if i["ok"]], [])

    # ---- what is no file of a format ----

    def test_no_files(self):
        os.mkfifo(os.path.join(self.dir, "fifo.json"))
        os.symlink("/dev/zero", os.path.join(self.dir, "zero.json"))
        os.symlink("loop.json", os.path.join(self.dir, "loop.json"))
        paths = [os.path.join(self.dir, n) for n in ("fifo.json", "zero.json", "loop.json", "none.json")]
        paths += self.write({"empty.json": b"", "empty.gz": gzip.compress(b""), "short.gz": b"\x1f\x8b", "one": b"{", "zeros": bytes(100000),
                             "noise": random.Random(1).randbytes(100000)})
        for i in self.call(paths):
            self.assertEqual((i["state"], i["format"]), ("failed", None), i)

    def test_a_folder_with_the_name_of_a_file(self):
        os.makedirs(os.path.join(self.dir, "x.json", "y.json"))
        path = os.path.join(self.dir, "x.json")
        i, = self.call([path])
        self.assertEqual((i["state"], i["outcome"]), ("failed", "is a folder without a file"))

    def test_a_pickle_with_code_is_not_run(self):
        mark = os.path.join(self.dir, "ran")

        class Code:
            def __reduce__(self):
                return os.system, (f"touch {mark}",)

        files = {f"p{p}-{n}": pickle.dumps(v, protocol=p) for p in range(6)
                 for n, v in (("code", Code()), ("within", {"version": "2.9", "entries": [Code()], "pg_config": {}}),
                              ("segments", {"segments": [Code()], "device_traces": [[]]}))}
        for i in self.call(self.write(files)):
            self.assertFalse(i["ok"], i)
        self.assertFalse(os.path.exists(mark))

    def test_a_file_that_grows_while_it_is_read(self):
        for s in SAMPLES:
            path, = self.write({s.file: s.content})
            stop = threading.Event()

            def grow():
                with open(path, "ab") as f:
                    while not stop.is_set():
                        f.write(b" " * (1 << 16))
                        f.flush()
                        stop.wait(0.001)

            writer = threading.Thread(target=grow)
            writer.start()
            try:
                self.call([path])
            finally:
                stop.set()
                writer.join()


if __name__ == "__main__":
    unittest.main()
