#!/usr/bin/env python3
"""The real collector against a fake agent: nothing that was acknowledged is lost
or doubled by kill -9, and every wrong start says what is wrong.

    test_collector.py SYNCLINE_COLLECTOR COLLECTOR_LOAD [NAME...]
"""
import collections
import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

COLLECTOR, LOAD = sys.argv[1:3]
N_COLL = 4
started = []


class Collector:
    def __init__(self, folder, *more, db="run.db", listen="tcp://127.0.0.1:0", run=None):
        self.db = os.path.join(folder, db)
        self.err = open(os.path.join(folder, "stderr"), "a+b")
        ready, write = os.pipe()
        argv = [COLLECTOR, "--db", self.db, "--listen", listen, "--http", "127.0.0.1:0",
                "--ready-fd", str(write), *more]
        if run:
            argv += ["--run", run]
        env = {k: v for k, v in os.environ.items() if not k.startswith("SYNCLINE_")}
        self.p = subprocess.Popen(argv, pass_fds=[write], stderr=self.err, env=env)
        started.append(self.p)
        os.close(write)
        with os.fdopen(ready) as f:
            line = f.readline()
        self.url = json.loads(line)["listen"] if line else None
        self.http = json.loads(line)["http"] if line else None

    def kill(self):
        self.p.kill()
        self.p.wait()

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        status = self.p.wait(20)
        self.err.close()
        return status

    def said(self):
        with open(self.err.name) as f:
            return f.read()


def load(url, *more):
    started.append(subprocess.Popen([LOAD, url, *more], stdout=subprocess.PIPE, text=True))
    return started[-1]


def result(p):
    out, _ = p.communicate(timeout=90)
    return p.returncode, json.loads(out)


def rows(db, sql):
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % db, uri=True)) as c:
        return c.execute(sql).fetchall()


def check_whole(db, log, agent=0):
    """Every acknowledged batch is there once, rings are tiled without holes or overlaps."""
    acked = [int(line.split()[0]) for line in open(log)]
    stored = collections.Counter(r[0] for r in rows(db, "SELECT seq FROM raw_batch WHERE agent = %d" % agent))
    assert len(set(acked)) == len(acked)
    missing = [s for s in acked if stored[s] != 1]
    assert not missing, "acknowledged and not stored once: %s" % missing[:10]
    for (process,) in rows(db, "SELECT process_id FROM raw_process WHERE agent = %d" % agent):
        end = 0
        for first, n in rows(db, "SELECT first_index, n_events FROM raw_chunk WHERE process_id = %d "
                                 "ORDER BY first_index" % process):
            assert first == end, "process %d: chunk at %d, expected %d" % (process, first, end)
            end = first + n
        assert rows(db, "SELECT lo, hi FROM raw_ring WHERE process_id = %d" % process) == [(0, end)]
    assert rows(db, "PRAGMA integrity_check") == [("ok",)]
    assert rows(db, "SELECT * FROM drop_count WHERE n > 0") == []
    return acked


def test_kill_9_of_the_collector_loses_and_doubles_nothing(folder):
    c = Collector(folder)
    url, log = c.url, os.path.join(folder, "acked")
    p = load(url, "--log", log, "--ranks", "0:4", "--seconds", "4", "--leave", "--resend", "300")
    for _ in range(4):
        time.sleep(0.8)
        c.kill()
        c = Collector(folder, listen=url)
        assert c.url == url, c.said()
    status, r = result(p)
    assert status == 0 and r["failed"] == 0, r
    assert c.stop() == 0, c.said()
    acked = check_whole(c.db, log)
    assert len(acked) == r["acked"] > 20
    # The analysis saw it all as well, over four deaths: once each, all ranks.
    n = r["steps"]
    assert rows(c.db, "SELECT count(*), min(step), max(step), min(n_ranks), min(complete) FROM step") == \
        [(n, 0, n - 1, 4, 1)]
    assert rows(c.db, "SELECT count(*), min(coverage) FROM rank_step") == [(4 * n, 1.0)]
    assert rows(c.db, "SELECT count(*), min(seq), max(seq), min(n_seen), min(decided), min(last_rank), "
                      "min(skew_ns), max(skew_ns) FROM collective") == \
        [(N_COLL * n, 0, N_COLL * n - 1, 4, 1, 3, 111, 111)]
    assert rows(c.db, "SELECT count(*) FROM collective_rank") == [(4 * N_COLL * n,)]
    assert rows(c.db, "SELECT ended_ns IS NOT NULL, world_size FROM run") == [(1, 4)]
    assert rows(c.db, "SELECT count(*) FROM rank_info WHERE state = 'left'") == [(4,)]


def test_fleet_time_is_the_same_after_a_restart(folder):
    c = Collector(folder)
    url = c.url
    status, r = result(load(url, "--log", os.path.join(folder, "a"), "--seconds", "0.2"))
    assert status == 0, r
    before = rows(c.db, "SELECT fleet_minus_raw_ns FROM raw_run")
    c.kill()
    c = Collector(folder, listen=url)
    status, r = result(load(url, "--log", os.path.join(folder, "b"), "--seconds", "0.2", "--id", "2",
                            "--ranks", "2:2", "--world", "4"))
    assert status == 0, r
    c.stop()
    assert rows(c.db, "SELECT fleet_minus_raw_ns FROM raw_run") == before


def test_a_second_agent_repeats_what_the_first_had_sent_and_nothing_doubles(folder):
    """An agent that died between the commit and its note of it drains the ring again."""
    c = Collector(folder)
    for agent in "1", "2":
        status, r = result(load(c.url, "--log", os.path.join(folder, agent), "--seconds", "0.5",
                                "--id", agent))
        assert status == 0, r
    assert c.stop() == 0
    for (process,) in rows(c.db, "SELECT process_id FROM raw_process"):
        end = 0
        for first, n in rows(c.db, "SELECT first_index, n_events FROM raw_chunk WHERE process_id = %d "
                                   "ORDER BY first_index" % process):
            assert first == end
            end = first + n
    assert rows(c.db, "SELECT count(*) FROM raw_process") == [(2,)]
    assert rows(c.db, "SELECT * FROM drop_count WHERE n > 0") == []


def refused(c, *more):
    status, r = result(load(c.url, "--hello", *more))
    assert status == 3, r
    return r["refused"], r["why"]


def test_a_wrong_token_run_or_protocol_is_refused_with_a_sentence(folder):
    token = os.path.join(folder, "token")
    with open(token, "w") as f:
        f.write("sesame\n")
    c = Collector(folder, "--token-file", token, run="job7")
    code, why = refused(c)
    assert code == 2 and "token" in why and "--token-file" in why, why
    code, why = refused(c, "--token", "Sesame")
    assert code == 2 and "wrong" in why, why
    code, why = refused(c, "--token", "sesame", "--run", "job8")
    assert code == 3 and "job7" in why and "job8" in why and "--db" in why, why
    code, why = refused(c, "--token", "sesame", "--protocol", "99")
    assert code == 1 and "99" in why and "Update" in why, why
    status, r = result(load(c.url, "--hello", "--token", "sesame", "--run", "job7"))
    assert status == 0, r
    assert c.stop() == 0
    assert rows(c.db, "SELECT count(*) FROM log WHERE kind = 'notice' AND text LIKE '%token%'") == [(2,)]


def sp_message(url, body, declared=None):
    """What the collector answers to one message in NNG's own framing; b"" = it hung up."""
    host, port = url[len("tcp://"):].split(":")
    with socket.create_connection((host, int(port)), timeout=10) as s:
        s.sendall(b"\0SP\0" + struct.pack(">HH", 0x30, 0))  # REQ
        assert s.recv(8, socket.MSG_WAITALL)[:4] == b"\0SP\0"
        data = struct.pack(">I", 0x80000001) + body
        s.sendall(struct.pack(">Q", declared or len(data)) + data)
        return s.recv(4096)


def test_malformed_messages_are_answered_with_a_sentence_and_hinder_nobody(folder):
    c = Collector(folder)
    data_url = "tcp://127.0.0.1:%d" % (int(c.url.split(":")[-1]) + 1)
    p = load(c.url, "--log", os.path.join(folder, "acked"), "--seconds", "2", "--rate", "50")
    for url in c.url, data_url:
        for body in b"", b"garbage", b"\x81\xa1t\x01", b"\xdf\xff\xff\xff\xff", b"\x91" * 60000:
            assert b"The message cannot be read" in sp_message(url, body), body
        assert sp_message(url, b"x", declared=1 << 40) == b""
        with socket.create_connection(("127.0.0.1", int(url.split(":")[-1])), timeout=10) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            s.recv(8, socket.MSG_WAITALL)
            assert s.recv(1) == b""
    status, r = result(p)
    assert status == 0 and r["failed"] == 0, r
    assert c.stop() == 0
    assert "syncline-agent of this release" in c.said(), c.said()
    check_whole(c.db, os.path.join(folder, "acked"))


def test_two_jobs_under_one_run_id_are_told_apart(folder):
    c = Collector(folder, run="job")
    log = os.path.join(folder, "acked")
    p = load(c.url, "--log", log, "--seconds", "4", "--rate", "50")
    while not rows(c.db, "SELECT 1 FROM raw_process LIMIT 1"):
        time.sleep(0.05)
    code, why = refused(c, "--ranks", "1:1", "--world", "2", "--id", "9", "--host", "other")
    assert code == 4 and "Rank 1" in why and "two jobs" in why, why
    status, r = result(p)
    assert status == 0 and r["failed"] == 0
    c.stop()
    check_whole(c.db, log)


def test_a_world_size_that_disagrees_is_said_and_nothing_is_lost(folder):
    c = Collector(folder)
    for agent, ranks, world in ("1", "0:2", "4"), ("2", "2:2", "8"):
        status, r = result(load(c.url, "--log", os.path.join(folder, agent), "--seconds", "0.2", "--id",
                                agent, "--ranks", ranks, "--world", world))
        assert status == 0, r
    c.stop()
    assert "8 ranks, others said 4" in c.said()
    assert rows(c.db, "SELECT count(DISTINCT process_id) FROM raw_chunk") == [(4,)]


def fails(status, *words, argv, env=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SYNCLINE_")} | (env or {})
    p = subprocess.run([COLLECTOR, *argv], stderr=subprocess.PIPE, text=True, timeout=20, env=env)
    assert p.returncode == status, (p.returncode, p.stderr)
    for word in words:
        assert word in p.stderr, p.stderr


def test_every_wrong_start_names_cause_and_next_step(folder):
    db, other = os.path.join(folder, "a.db"), ["--http", "127.0.0.1:0", "--listen", "tcp://127.0.0.1:0"]
    fails(2, "--db", argv=[])
    fails(2, "unrecognized option", argv=["--db", db, "--colour"])
    fails(2, "is not expected here", argv=["--db", db, "x"])
    fails(2, "token", "--token-file", argv=["--db", db, "--listen", "tcp://0.0.0.0:0"])
    fails(2, "token", "--http-token-file", argv=["--db", db, "--http", "0.0.0.0:0"])
    fails(2, "tcp://", "ipc://", argv=["--db", db, "--listen", "ipc://", "--http", "127.0.0.1:0"])
    fails(3, "directory", argv=["--db", os.path.join(folder, "no", "a.db"), *other])
    fails(2, "--run", argv=["--db", folder, *other])
    foreign = os.path.join(folder, "foreign.db")
    with contextlib.closing(sqlite3.connect(foreign)) as c:
        c.execute("CREATE TABLE mine (x)")
        c.commit()
    before = open(foreign, "rb").read()
    fails(3, "not a syncline catalogue", argv=["--db", foreign, *other])
    assert open(foreign, "rb").read() == before
    text = os.path.join(folder, "notes.txt")
    with open(text, "w") as f:
        f.write("my notes\n" * 100)
    fails(3, "not a syncline catalogue", argv=["--db", text, *other])
    fails(2, "no address to listen on", argv=["--db", db, "--listen", "nonsense", "--http", "127.0.0.1:0"])
    fails(2, "not ADDRESS:PORT", argv=["--db", db, "--listen", "tcp://127.0.0.1:0", "--http", "nonsense"])
    fails(2, "SYNCLINE_RUN", argv=["--db", db, *other], env={"SYNCLINE_RUN": "x" * 65})
    fails(3, "token file", "visible", argv=["--db", db, *other], env={"SYNCLINE_TOKEN_FILE": "/dev/null"})
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    fails(3, "in use", "--listen", argv=["--db", db, "--listen", "tcp://127.0.0.1:%d" % port, "--http",
                                          "127.0.0.1:0"])
    fails(3, "in use", argv=["--db", db, "--listen", "tcp://127.0.0.1:0", "--http", "127.0.0.1:%d" % port])
    taken.close()
    # What did not start leaves no file that would be in the way of the next start.
    assert sorted(os.listdir(folder)) == ["foreign.db", "notes.txt"], os.listdir(folder)
    fails(3, "not there", argv=["--read-only", "--db", os.path.join(folder, "none.db"), "--http",
                                "127.0.0.1:0"])


def test_another_run_a_newer_schema_and_a_second_collector_are_refused(folder):
    c = Collector(folder, run="first")
    other = ["--http", "127.0.0.1:0", "--listen", "tcp://127.0.0.1:0"]
    fails(3, "another collector", argv=["--db", c.db, *other])
    assert c.stop() == 0
    fails(3, "holds run first, not second", argv=["--db", c.db, "--run", "second", *other])
    with contextlib.closing(sqlite3.connect(c.db)) as d:
        d.execute("PRAGMA user_version = 999")
    fails(3, "newer syncline", argv=["--db", c.db, *other])
    fails(3, "newer", argv=["--read-only", "--db", c.db, "--http", "127.0.0.1:0"])


def test_a_directory_holds_one_file_a_run(folder):
    c = Collector(folder, db="", run="../etc/x")
    assert c.stop() == 0
    assert os.listdir(folder).count("_._etc_x.db") == 1, os.listdir(folder)


def get(http, path):
    """An answer of the API; 503 says when to ask again (while the catalogue is read)."""
    until = time.time() + 30
    while True:
        try:
            with urllib.request.urlopen(http + path, timeout=30) as f:
                return json.load(f)
        except urllib.error.HTTPError as e:
            if e.code != 503 or time.time() > until:
                raise
            time.sleep(int(e.headers["Retry-After"]))


def test_read_only_serves_and_leaves_the_file_as_it_is(folder):
    c = Collector(folder)
    status, r = result(load(c.url, "--log", os.path.join(folder, "a"), "--seconds", "0.3"))
    assert status == 0 and c.stop() == 0
    files = sorted(os.listdir(folder))
    before = open(c.db, "rb").read()
    os.chmod(c.db, 0o400)
    c = Collector(folder, "--read-only")
    assert c.http and c.url == ""
    assert get(c.http, "api/v1/run")
    assert c.stop() == 0
    assert open(c.db, "rb").read() == before
    assert sorted(os.listdir(folder)) == files


def test_the_page_hears_of_steps_while_they_run(folder):
    c = Collector(folder)
    p = load(c.url, "--log", os.path.join(folder, "a"), "--seconds", "2", "--rate", "20")
    with urllib.request.urlopen(c.http + "api/v1/events", timeout=30) as f:
        until, seen = time.time() + 4, set()
        while time.time() < until and "event: step" not in seen:
            seen.add(f.readline().decode().strip())
    assert "event: step" in seen, seen
    boot = get(c.http, "api/v1/boot")
    assert boot["live"]["n_agents"] == 1 and boot["coverage"]["ranks_seen"] == 2, boot
    assert result(p)[0] == 0 and c.stop() == 0


def main():
    wanted = sys.argv[3:]
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        folder = tempfile.mkdtemp(prefix="syncline-collector-")
        try:
            t0 = time.time()
            test(folder)
            print("ok %s (%.1f s)" % (name, time.time() - t0), flush=True)
        except Exception as e:
            failed += 1
            import traceback
            traceback.print_exc()
            print("FAILED %s: %s" % (name, e), flush=True)
            with contextlib.suppress(OSError):
                print(open(os.path.join(folder, "stderr")).read()[-2000:])
        finally:
            for p in started:
                if p.poll() is None:
                    p.kill()
                    p.wait()
            started.clear()
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


sys.exit(main())
