#!/usr/bin/env python3
"""The command around the formats: folders, copies, what is no trace, names of people and machines, and a database
that is there only when it is whole."""
import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import shutil
import signal
import sqlite3
import subprocess
import tarfile
import time
import unittest
import zipfile

from test_import import DATA, SYNCLINE, Folder, call, profile, timeline

NAMES = ("alice", "trainer-a", "corp.example", "10.1.2.3")


def zstd(content):
    program = shutil.which("zstd")
    return program and subprocess.run([program, "-c"], input=content, capture_output=True, check=True).stdout


def planted(rank):
    """A profile with names in every place that is kept."""
    v = profile(rank, 900, 0)
    v["host_name"] = "trainer-a.corp.example"
    v["username"] = "alice"
    for e in v["traceEvents"]:
        if e["name"] == "gemm":
            e["name"] = "/home/alice/x.py(12): step on trainer-a of alice at 10.1.2.3"
        if "args" in e and "Process Group Description" in e["args"]:
            e["args"]["Process Group Description"] = "data of trainer-a"
    return v


class Files(Folder):
    def rows(self, sql):
        with contextlib.closing(sqlite3.connect(self.db)) as db:
            return db.execute(sql).fetchall()

    def run_json(self, *words, status=0):
        r = call("import", *words, "--json")
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return json.loads(r.stdout)

    def left(self):
        return [n for n in os.listdir(self.dir) if ".db" in n]

    # ---- folders ----

    def test_a_folder_is_read_in_order_and_what_is_no_trace_is_skipped(self):
        top = os.path.join(self.dir, "job")
        os.makedirs(os.path.join(top, "sub", ".git"))
        for name, content in (("job/rank10.json", profile(10, 0, 0)), ("job/rank2.json", profile(2, 0, 0)),
                              ("job/sub/rank0.json", profile(0, 900, 0)), ("job/README", b"read me"), ("job/train.py", b"import torch\n"),
                              ("job/config.json", {"lr": 1}), ("job/__init__.py", b""), ("job/.hidden.json", profile(5, 0, 0)),
                              ("job/sub/.git/x.json", profile(6, 0, 0)), ("other.json", profile(7, 0, 0))):
            self.file(name, content)
        os.symlink(os.path.join(self.dir, "other.json"), os.path.join(top, "link.json"))
        os.symlink(self.dir, os.path.join(top, "up"))
        os.mkfifo(os.path.join(top, "fifo"))
        v = self.run_json(top, "--db", self.db)
        read = [(os.path.relpath(i["file"], top), i["rank"]) for i in v["inputs"] if i["state"] == "read"]
        self.assertEqual(read, [("rank2.json", 2), ("rank10.json", 10), ("sub/rank0.json", 0)])
        skipped = {os.path.relpath(i["file"], top): i["outcome"] for i in v["inputs"] if i["state"] == "skipped"}
        self.assertEqual(sorted(skipped), ["README", "__init__.py", "config.json", "fifo", "link.json", "train.py", "up"])
        self.assertIn("a link, which is not followed", skipped["link.json"])
        self.assertTrue(all(x.startswith("skipped: ") for x in skipped.values()), skipped)
        self.assertEqual((v["read"], v["failed"], v["skipped"], v["hidden"]), (3, 0, 7, 2))
        self.assertEqual([r[0] for r in self.rows("SELECT file FROM input ORDER BY id")], [i["file"] for i in v["inputs"]])
        shown = call("report", self.db).stdout
        self.assertIn("were skipped: 7", shown)
        self.assertNotIn("train.py", shown)
        os.unlink(self.db)
        r = call("import", top, "--db", self.db, "-v")
        self.assertIn("2 hidden files or folders not looked at: " + top, r.stdout)
        self.assertIn("3 files read, 7 skipped; 3 ranks", r.stdout)
        for word in ("FILE", "FORMAT", "RANK", "EVENTS", "OUTCOME"):
            self.assertIn(word, r.stdout.splitlines()[0])

    def test_named_it_is_a_failure_in_a_folder_it_is_not(self):
        good, readme = self.file("rank0.json", profile(0, 0, 0)), self.file("README", b"read me")
        v = self.run_json(good, readme, "--db", self.db, status=5)
        self.assertEqual([i["state"] for i in v["inputs"]], ["read", "failed"])

    def test_a_damaged_trace_in_a_folder_is_a_failure(self):
        os.mkdir(os.path.join(self.dir, "job"))
        self.file("job/rank0.json", profile(0, 0, 0))
        self.file("job/rank1.json", json.dumps(profile(1, 0, 0)).encode()[:-40])
        packed = gzip.compress(json.dumps(profile(2, 0, 0)).encode())
        self.file("job/rank2.json.gz", packed[:-100])
        v = self.run_json(os.path.join(self.dir, "job"), "--db", self.db, status=5)
        self.assertEqual([i["state"] for i in v["inputs"]], ["read", "failed", "failed"])

    def test_a_tower_of_folders_has_an_end(self):
        deep = os.path.join(self.dir, "job", *["d"] * 20)
        os.makedirs(deep)
        self.file("job/rank0.json", profile(0, 0, 0))
        self.file(os.path.join(deep, "rank1.json"), profile(1, 0, 0))
        v = self.run_json(os.path.join(self.dir, "job"), "--db", self.db, status=5)
        self.assertEqual(sorted(i["state"] for i in v["inputs"]), ["failed", "read"])
        self.assertIn("folders deep", json.dumps(v))

    # ---- copies ----

    def test_a_copy_counts_once_packed_or_not(self):
        os.mkdir(os.path.join(self.dir, "job"))
        text = json.dumps(profile(0, 900, 0)).encode()
        self.file("job/a.json", text)
        self.file("job/b.json", text)
        self.file("job/c.json.gz", gzip.compress(text))
        self.file("job/d.json.gz", gzip.compress(text, 1, mtime=7))
        self.file("job/rank1.json", profile(1, 900, 0))
        self.file("job/x.json", text[:-1] + b" ")
        top = os.path.join(self.dir, "job")
        v = self.run_json(top, "--db", self.db, status=5)
        self.assertEqual([i["state"] for i in v["inputs"]], ["read", "skipped", "skipped", "skipped", "read", "failed"])
        for i in v["inputs"][1:4]:
            self.assertIn(f"its content is that of {top}/a.json, which counts once", i["outcome"])
        self.assertEqual(v["ranks"], 2)
        again = self.run_json(os.path.join(top, "a.json"), os.path.join(top, "a.json"), "--db", self.db, "--force")
        self.assertEqual([i["state"] for i in again["inputs"]], ["read", "skipped"])

    def test_a_rank_that_is_there_twice_is_said(self):
        files = [self.file("a.json", profile(0, 0, 0)), self.file("b.json", profile(0, 900, 0))]
        v = self.run_json(*files, "--db", self.db, status=5)
        self.assertIn("of rank 0, and so was", v["inputs"][1]["outcome"])
        self.assertEqual(self.rows("SELECT count(*) FROM input WHERE rank = 0 AND outcome = 'ok'"), [(1,)])

    # ---- archives ----

    def members(self):
        return {"job/rank1.json.gz": gzip.compress(json.dumps(profile(1, 900, 0)).encode()),
                "job/rank0.json": json.dumps(profile(0, 900, 0)).encode(), "job/train.py": b"import torch\n",
                "../../etc/rank2.json": json.dumps(profile(2, 0, 0)).encode(), "job/.git/x": b"x", "job/empty": b""}

    def tar(self, name, mode):
        path = os.path.join(self.dir, name)
        with tarfile.open(path, mode) as t:
            for member, content in self.members().items():
                info = tarfile.TarInfo(member)
                info.size = len(content)
                t.addfile(info, io.BytesIO(content))
            link = tarfile.TarInfo("job/link.json")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            t.addfile(link)
        return path

    def zip(self, name):
        path = os.path.join(self.dir, name)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
            for member, content in self.members().items():
                z.writestr(member, content)
        return path

    def check_archive(self, path):
        v = self.run_json(path, "--db", self.db, "--force")
        self.assertEqual([(i["file"], i["rank"]) for i in v["inputs"] if i["state"] == "read"],
                         [(f"{path}: ../../etc/rank2.json", 2), (f"{path}: job/rank0.json", 0), (f"{path}: job/rank1.json.gz", 1)])
        self.assertEqual([os.path.basename(i["file"]) for i in v["inputs"] if i["state"] == "skipped"], ["empty", "train.py"])
        self.assertEqual(v["hidden"], 1)

    def test_an_archive_is_read_like_a_folder(self):
        before = set(os.listdir(self.dir))
        for name, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.txz", "w:xz"), ("trace", "w:bz2")):
            with self.subTest(name=name):
                self.check_archive(self.tar(name, mode))
        self.check_archive(self.zip("a.zip"))
        self.assertEqual(set(os.listdir(self.dir)) - before, {"a.tar", "a.tar.gz", "a.txz", "trace", "a.zip", "job.db"})

    def test_an_archive_in_a_folder_and_a_copy_of_its_member(self):
        os.mkdir(os.path.join(self.dir, "job"))
        path = self.tar("job/a.tar.gz", "w:gz")
        self.file("job/rank1.json", profile(1, 900, 0))
        v = self.run_json(os.path.join(self.dir, "job"), "--db", self.db)
        self.assertEqual(v["read"], 3)
        copy, = [i for i in v["inputs"] if i["outcome"].startswith("skipped: its content is that of")]
        self.assertEqual(copy["file"], os.path.join(self.dir, "job", "rank1.json"))
        self.assertIn(path, copy["outcome"])

    def test_a_damaged_archive_costs_what_was_behind(self):
        with open(self.tar("a.tar.gz", "w:gz"), "rb") as f:
            whole = f.read()
        good = self.file("rank7.json", profile(7, 0, 0))
        for share in (0.02, 0.3, 0.6, 0.95):
            path = self.file("cut.tar.gz", whole[:int(len(whole) * share)])
            v = self.run_json(good, path, "--db", self.db, "--force", status=5)
            self.assertEqual([i["state"] for i in v["inputs"] if i["file"] == path], ["failed"], v["inputs"])

    def test_an_archive_that_bursts_is_refused(self):
        block = b" " * (1 << 20)
        tar = tarfile.TarInfo("rank0.json")
        tar.size = 1 << 30
        paths = [self.file("b.tar.gz", gzip.compress(tar.tobuf()) + gzip.compress(block) * 1024 + gzip.compress(bytes(10240)))]
        paths.append(os.path.join(self.dir, "b.zip"))
        with zipfile.ZipFile(paths[1], "w", zipfile.ZIP_DEFLATED) as z, z.open("rank0.json", "w") as f:
            for _ in range(600):
                f.write(block)
        for path in paths:
            v = self.run_json(path, "--db", self.db, status=3)
            self.assertIn("unpacks to more than 200 times its size", v["inputs"][0]["outcome"])
        self.assertEqual(self.left(), [])

    def test_other_packers(self):
        text = json.dumps(profile(0, 900, 0)).encode()
        for name, content in (("a.xz", lzma.compress(text)), ("a.bz2", bz2.compress(text)), ("a.zst", zstd(text))):
            if content is None:
                continue # no zstd to pack with
            with self.subTest(name=name):
                v = self.run_json(self.file(name, content), "--db", self.db, "--force")
                self.assertEqual(v["inputs"][0]["format"], "Kineto trace")
                v = self.run_json(self.file(name, content[:-30]), "--db", self.db, "--force", status=3)
                self.assertIn("damaged or cut off", v["inputs"][0]["outcome"])

    # ---- names ----

    def places(self):
        os.makedirs(os.path.join(self.dir, "home", "alice", "traces"))
        return [self.file(f"home/alice/traces/{name}", planted(rank)) for rank, name in
                enumerate(("trainer-a.corp.example_4711.1700000000.pt.trace.json", "of_10.1.2.3.json"))]

    def test_names_are_marks_unless_they_are_kept(self):
        files = self.places() + [self.file("home/alice/bad.json", b"{\"traceEvents\": [{\"ph\"")]
        for keep in ((), ("--keep-names",)):
            v = self.run_json(*files, "--db", self.db, "--force", *keep, status=5)
            self.assertEqual(v["inputs"][0]["file"], files[0]) # the person who typed it sees it as it was
            with open(self.db, "rb") as f:
                content = f.read()
            for name in NAMES:
                self.assertEqual(name.encode() in content, bool(keep), name)
            hosts = {h["host"] for h in self.report()["clock"]["hosts"]}
            if keep:
                self.assertEqual(hosts, {"trainer-a.corp.example"})
            else:
                mark, = hosts
                self.assertRegex(mark, "^host-[0-9a-f]{8}$")
                names = [r[0] for r in self.rows("SELECT file FROM input ORDER BY id")]
                self.assertIn(mark + "_4711.1700000000.pt.trace.json", names[0])
                self.assertRegex(names[0], "/home/user-[0-9a-f]{8}/traces/")
            self.assertEqual(self.rows("SELECT DISTINCT rank FROM input WHERE rank IS NOT NULL ORDER BY 1"), [(0,), (1,)])

    def test_two_databases_have_other_marks(self):
        files, marks = self.places(), []
        for _ in range(2):
            self.run_json(*files, "--db", self.db, "--force")
            marks.append(self.report()["clock"]["hosts"][0]["host"])
        self.assertNotEqual(*marks)

    def test_kernels_and_groups_keep_their_names(self):
        self.run_json(self.file("a.json", profile(0, 0, 0)), self.file("b.json", profile(1, 0, 0)), "--db", self.db)
        with open(self.db, "rb") as f:
            content = f.read()
        for name in (b"gemm", b"0 (default_pg)"):
            self.assertIn(name, content)

    # ---- one job, several tools ----

    @unittest.skipUnless(os.path.exists(os.path.join(DATA, "h200", "flight_recorder.tgz")), "../shared/data is not there")
    def test_a_job_that_several_tools_recorded(self):
        h200, top = os.path.join(DATA, "h200"), os.path.join(self.dir, "job")
        os.makedirs(top)
        for name in ("kineto_ddp_rank0.json.gz", "kineto_ddp_rank1.json.gz", "nccl_debug_rank0.log.gz",
                     "nccl_debug_rank1.log.gz", "topo.xml", "graph.xml"):
            shutil.copy(os.path.join(h200, name), top)
        with tarfile.open(os.path.join(h200, "flight_recorder.tgz")) as t:
            for rank in (0, 1):
                with open(os.path.join(top, f"fr_ddp_rank{rank}.pkl"), "wb") as f:
                    f.write(t.extractfile(f"fr_ddp_rank{rank}.pkl").read())
        v = self.run_json(top, "--db", self.db)
        self.assertEqual([i["ok"] for i in v["inputs"]], [True] * 8)
        r = self.report()
        finding, = [f for f in r["verdicts"] if f["severity"] != "notice"]
        self.assertEqual((finding["class"], finding["culprit"]["ranks"]), ("slow.fixed_rank", [1]))
        self.assertIn("Rank 1 adds 29.1 ms to every step", finding["sentence"])
        self.assertIn("host side", finding["sentence"])
        self.assertEqual(r["run"]["world_size"], 2)

    # ---- the database ----

    def test_force_replaces_a_database_and_nothing_else(self):
        good = self.file("rank0.json", profile(0, 0, 0))
        self.run_json(good, "--db", self.db)
        self.assertIn("--force", call("import", good, "--db", self.db).stderr)
        self.run_json(good, self.file("rank1.json", profile(1, 0, 0)), "--db", self.db, "--force")
        self.assertEqual(self.rows("SELECT count(*) FROM input"), [(2,)])
        thesis = self.file("thesis.txt", b"years of work")
        r = call("import", good, "--db", thesis, "--force")
        self.assertEqual((r.returncode, "is no database" in r.stderr), (3, True))
        with open(thesis, "rb") as f:
            self.assertEqual(f.read(), b"years of work")
        bad = self.file("bad.json", b"x")
        self.assertEqual(call("import", bad, "--db", self.db, "--force").returncode, 3)
        self.assertEqual(self.rows("SELECT count(*) FROM input"), [(2,)]) # what was there stays
        self.assertEqual(self.left(), ["job.db"])

    def test_a_signal_leaves_nothing(self):
        events = profile(0, 0, 0)["traceEvents"]
        big = {"schemaVersion": 1, "traceEvents": events * 3000}
        path = self.file("big.json", big)
        for sig in (signal.SIGINT, signal.SIGTERM):
            for wait_s in (0.05, 0.2, 0.5, 0.8):
                p = subprocess.Popen([SYNCLINE, "import", path, "--db", self.db], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                time.sleep(wait_s)
                p.send_signal(sig)
                p.communicate(timeout=60)
                if p.returncode == -sig:
                    self.assertEqual(self.left(), [])
                else: # it was faster
                    self.assertEqual((p.returncode, self.left()), (0, ["job.db"]))
                    os.unlink(self.db)

    # ---- what to say ----

    def test_mistakes_are_named(self):
        good = self.file("rank0.json", profile(0, 0, 0))
        r = call("import", os.path.join(self.dir, "rank0.jsn"), "--db", self.db)
        self.assertEqual(r.returncode, 3)
        self.assertIn("Did you mean rank0.json?", r.stdout)
        r = call("import", good, "--db", os.path.join(self.dir, "none", "x.db"))
        self.assertEqual((r.returncode, "the folder " in r.stderr), (3, True))
        os.mkdir(os.path.join(self.dir, "empty"))
        r = call("import", os.path.join(self.dir, "empty"), "--db", self.db)
        self.assertEqual(r.returncode, 3)
        self.assertIn("is a folder without a file", r.stdout)
        self.file("empty/x.py", b"import os\n")
        r = call("import", os.path.join(self.dir, "empty"), "--db", self.db)
        self.assertEqual((r.returncode, "there is no trace in what was named" in r.stderr), (3, True))
        self.assertEqual(self.left(), [])

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_what_may_not_be_read_is_said(self):
        good = self.file("rank0.json", profile(0, 0, 0))
        closed = self.file("rank1.json", profile(1, 0, 0))
        os.chmod(closed, 0)
        v = self.run_json(good, closed, "--db", self.db, status=5)
        self.assertIn("Permission denied", v["inputs"][1]["outcome"])

    def test_a_dry_run_reads_nothing_and_says_what_each_is(self):
        os.mkdir(os.path.join(self.dir, "job"))
        self.file("job/a.json.gz", gzip.compress(json.dumps(profile(0, 0, 0)).encode()))
        self.file("job/b.json", timeline(0))
        self.file("job/README", b"x")
        v = self.run_json(os.path.join(self.dir, "job"), "--dry-run")
        self.assertEqual({os.path.basename(i["file"]): (i["format"], i["state"]) for i in v["inputs"]},
                         {"README": (None, "skipped"), "a.json.gz": ("Kineto trace", "read"),
                          "b.json": ("StragglerAnalysis timeline", "read")})
        self.assertIsNone(v["db"])
        self.assertEqual(call("import", os.path.join(self.dir, "job"), "--list").returncode, 0)
        self.assertEqual(self.left(), [])

    def test_a_name_that_is_no_text_is_no_trouble(self):
        path = os.path.join(self.dir.encode(), b"rank0-\xff\x1b.json")
        with open(path, "wb") as f:
            f.write(json.dumps(profile(0, 0, 0)).encode())
        r = subprocess.run([SYNCLINE, "import", path, "--db", self.db], capture_output=True, timeout=60)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertNotIn(b"\x1b", r.stdout)
        os.unlink(self.db)
        r = subprocess.run([SYNCLINE, "import", path, "--db", self.db, "--json"], capture_output=True, timeout=60)
        self.assertEqual(json.loads(r.stdout)["inputs"][0]["state"], "read")


if __name__ == "__main__":
    unittest.main()
