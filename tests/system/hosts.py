"""Hosts as network namespaces of this machine, for tests of clocks.

Each agent gets a clock that is a given function of the machine's own (SYNCLINE_TEST_CLOCK), and the
network between is a relay that misbehaves by a seed (relay.c) or the kernel alone. So the truth of every
offset is known, and every bound can be held against it.
"""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
RELAY = os.path.join(BUILD, "tests", "system", "relay")
SCRIPT = os.path.join(HERE, "spine_train.py")
PYTHON = "/usr/bin/python3"
PORT = 7788
N_HOSTS = 3
RANKS = [1, 1, 2, 3]  # rank -> host
SECOND = 1_000_000_000
UNDECIDED_NS = 3 * SECOND  # around a step of RAW itself no bound is promised


def raw_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


class Clock:
    """host RAW as a function of the machine's."""

    def __init__(self, offset, ppb, steps=(), walls=()):
        self.offset, self.ppb, self.steps, self.walls, self.origin = offset, ppb, steps, walls, raw_ns()

    def spec(self):
        parts = [f"offset={self.offset}", f"ppb={self.ppb}", f"origin={self.origin}"]
        parts += [f"step={at}:{by}" for at, by in self.steps]
        parts += [f"wall={at}:{by}" for at, by in self.walls]
        return ",".join(parts)

    def ahead(self, raw):
        """host - RAW at that instant."""
        drift = int((raw - self.origin) * self.ppb / 1e9)
        return self.offset + drift + sum(by for at, by in self.steps if raw >= at)

    def near_step(self, raw):
        return any(abs(raw - at) < UNDECIDED_NS for at, _ in self.steps)


def sh(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Net:
    """Hosts h1…h3 and a relay r on one bridge, the collector c behind r."""

    def __init__(self):
        self.prefix = f"sl{os.getpid() % 10000}"
        self.made = []

    def ns(self, name):
        return f"{self.prefix}{name}"

    def inside(self, name, *command):
        return ["ip", "netns", "exec", self.ns(name), *command]

    def ip(self, name, *command):
        sh("ip", "-n", self.ns(name), *command)

    def link(self, a, dev_a, b, dev_b):
        sh("ip", "link", "add", dev_a, "netns", self.ns(a), "type", "veth", "peer", "name", dev_b, "netns", self.ns(b))
        self.ip(a, "link", "set", dev_a, "up")
        self.ip(b, "link", "set", dev_b, "up")

    def up(self):
        for name in ["r", "c"] + [f"h{i}" for i in range(1, N_HOSTS + 1)]:
            sh("ip", "netns", "add", self.ns(name))
            self.made.append(self.ns(name))
            self.ip(name, "link", "set", "lo", "up")
        self.ip("r", "link", "add", "br0", "type", "bridge")
        self.ip("r", "addr", "add", "10.77.1.254/24", "dev", "br0")
        self.ip("r", "link", "set", "br0", "up")
        for i in range(1, N_HOSTS + 1):
            self.link("r", f"p{i}", f"h{i}", "e0")
            self.ip("r", "link", "set", f"p{i}", "master", "br0")
            self.ip(f"h{i}", "addr", "add", f"10.77.1.{i}/24", "dev", "e0")
            self.ip(f"h{i}", "route", "add", "default", "via", "10.77.1.254")
        self.link("r", "c0", "c", "e0")
        self.ip("r", "addr", "add", "10.77.2.1/24", "dev", "c0")
        self.ip("c", "addr", "add", "10.77.2.2/24", "dev", "e0")
        self.ip("c", "route", "add", "default", "via", "10.77.2.1")
        sh(*self.inside("r", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"))

    def wire(self, i):
        """One more link from host i to the collector, with nothing between."""
        self.link(f"h{i}", "w0", "c", f"w{i}")
        self.ip(f"h{i}", "addr", "add", f"10.77.{10 + i}.1/24", "dev", "w0")
        self.ip("c", "addr", "add", f"10.77.{10 + i}.2/24", "dev", f"w{i}")
        return f"10.77.{10 + i}.2"

    def down(self):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def why_no_namespaces():
    if os.geteuid() != 0:
        return "needs root for network namespaces"
    net = Net()
    try:
        sh("ip", "netns", "add", net.ns("x"))
    except (OSError, subprocess.CalledProcessError) as e:
        return f"network namespaces are not allowed here: {e}"
    sh("ip", "netns", "del", net.ns("x"))
    return None


@unittest.skipIf(why_no_namespaces(), why_no_namespaces())
class Hosts(unittest.TestCase):
    """A collector, three agents with clocks of their own, and what lies between them."""

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.net = Net()
        self.addCleanup(self.net.down)
        self.net.up()
        self.running = []
        self.addCleanup(self.end_all)
        self.db_path = os.path.join(self.dir.name, "run.db")
        self.token = os.path.join(self.dir.name, "token")
        with open(self.token, "w") as f:
            f.write("a-token-of-the-test\n")
        self.clocks, self.shm = {}, {}

    def end_all(self):
        for p in reversed(self.running):
            if p.poll() is None:
                p.terminate()
                try:
                    p.wait(20)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.wait()
            if p.stdout:
                p.stdout.close()
        for path in self.shm.values():
            subprocess.run(["rm", "-rf", path])

    def spawn(self, ns, command, name=None, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("SYNCLINE_")}
        env.update(OMP_NUM_THREADS="1", **more.pop("env", {}))
        if name:
            command = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name, *command]
        p = subprocess.Popen(self.net.inside(ns, *command), env=env, **more)
        self.running.append(p)
        return p

    def collector(self, *options, listen="10.77.2.2"):
        r, w = os.pipe()
        p = self.spawn("c", [os.path.join(BUILD, "syncline-collector"), "--db", self.db_path, "--listen",
                             f"tcp://{listen}:{PORT}", "--http", "127.0.0.1:7780", "--run", "clocks", "--token-file",
                             self.token, "--ready-fd", str(w), *options], pass_fds=[w])
        os.close(w)
        with os.fdopen(r) as f:
            self.assertIn("listen", json.loads(f.readline()))
        return p

    def relay(self, seed, *options):
        p = self.spawn("r", [RELAY, "10.77.1.254", "10.77.2.2", str(PORT), str(seed), *options],
                       stdout=subprocess.PIPE, text=True)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def agent(self, host, clock, to="10.77.1.254"):
        self.clocks[f"host{host}"] = clock
        if host not in self.shm:
            self.shm[host] = tempfile.mkdtemp(prefix="syncline-test-", dir="/dev/shm")
        return self.spawn(f"h{host}", [os.path.join(BUILD, "syncline-agent"), "--collector", f"tcp://{to}:{PORT}",
                                       "--dir", self.shm[host], "--run", "clocks", "--token-file", self.token, "--spool",
                                       os.path.join(self.dir.name, f"spool{host}"), "--keep"],
                          name=f"host{host}", env={"SYNCLINE_TEST_CLOCK": clock.spec()})

    def training(self, steps, *options):
        out = os.path.join(self.dir.name, "out")
        os.makedirs(out)
        ranks = []
        for rank, host in enumerate(RANKS):
            env = dict(RANK=str(rank), LOCAL_RANK=str(rank % 2), WORLD_SIZE=str(len(RANKS)), LOCAL_WORLD_SIZE="2",
                       MASTER_ADDR="10.77.1.1", MASTER_PORT="29500", GLOO_SOCKET_IFNAME="e0",
                       SYNCLINE_DIR=self.shm[host], SYNCLINE_RUN="clocks",
                       PYTHONPATH=os.path.join(BUILD, "agent", "python"))
            ranks.append(self.spawn(f"h{host}", [PYTHON, SCRIPT, out, str(steps), *options], env=env,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return out, ranks

    def stop(self, *processes):
        for p in processes:
            p.terminate()
            self.assertIn(p.wait(30), (0, 143), p.args)

    def db(self):
        db = sqlite3.connect(f"file:{self.db_path}?mode=ro", uri=True)
        db.row_factory = sqlite3.Row
        self.addCleanup(db.close)
        return db

    def path_of(self, host):
        try:
            db = sqlite3.connect(f"file:{self.db_path}?mode=ro", uri=True)
            row = db.execute("select way, why, stamps, n_exchanges, n_refused from clock_path where host = ?",
                             (host,)).fetchone()
            db.close()
            return row
        except sqlite3.Error:
            return None

    def until(self, what, seconds, message):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if what():
                return
            time.sleep(0.1)
        raise AssertionError(f"{message}; paths: {[self.path_of(h) for h in self.clocks]}")

    # ---- claims

    def check_exchanges(self, db, way):
        """Every stored exchange bounds the true offset from both sides. Returns their number, and for
        each second the error of the middle of its two best bounds, and their width."""
        base = db.execute("select fleet_minus_raw_ns from raw_run").fetchone()[0]
        n, seconds = 0, {}
        for x in db.execute("select * from clock_sample where way = ?", (way,)):
            clock = self.clocks[x["host"]]
            raw1, raw2 = x["t1_ns"] - base, x["t2_ns"] - base
            # delay of each direction on the machine's one clock: never below zero
            there = raw1 - (x["host_t0_ns"] - clock.ahead(raw1))
            back = (x["host_t3_ns"] - clock.ahead(raw2)) - raw2
            slack = 2 + (x["host_t3_ns"] - x["host_t0_ns"]) * abs(clock.ppb) // SECOND
            if clock.near_step(raw1):
                continue
            self.assertGreaterEqual(there, -slack, dict(x))
            self.assertGreaterEqual(back, -slack, dict(x))
            n += 1
            seconds.setdefault((x["host"], x["host_t0_ns"] // SECOND), []).append((there, back))
        best = [(min(t for t, _ in v), min(b for _, b in v)) for v in seconds.values()]
        return n, [abs(t - b) / 2 for t, b in best], [t + b for t, b in best]

    def check_estimates(self, db):
        """The hard bound holds the true offset, always but around a step of RAW."""
        base = db.execute("select fleet_minus_raw_ns from raw_run").fetchone()[0]
        error, n_near = [], 0
        for c in db.execute("select * from clock_quality where not same_clock"):
            clock = self.clocks[c["host"]]
            raw = c["at_ns"] - base
            if clock.near_step(raw):
                n_near += 1
                continue
            off = c["offset_ns"] - (base - clock.ahead(raw))
            slack = 2 + (c["rtt_ns"] + 10_000_000) * abs(clock.ppb) // SECOND  # told for t1, placed at t3
            self.assertLessEqual(abs(off), c["offset_err_ns"] + slack, dict(c))
            error.append(abs(off))
        return error, n_near

    def hindsight_errors(self, db):
        """What `syncline clocks --hindsight` makes of the stored exchanges holds the truth, too. How far off
        its offsets are, but around a step of RAW."""
        r = subprocess.run([os.path.join(BUILD, "syncline"), "clocks", self.db_path, "--hindsight", "--json"], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(r.returncode, 0, r.stderr)
        base = db.execute("select fleet_minus_raw_ns from raw_run").fetchone()[0]
        hosts = json.loads(r.stdout)["hindsight"]
        self.assertEqual([h["host"] for h in hosts], sorted(self.clocks))
        error = []
        for h in hosts:
            clock = self.clocks[h["host"]]
            for p in h["points"]:
                raw = p["host_ns"] + p["offset_ns"] - base
                if p["error_ns"] is None or clock.near_step(raw):
                    continue
                off = abs(raw + clock.ahead(raw) - p["host_ns"])
                self.assertLessEqual(off, p["error_ns"] + 2, p)
                error.append(off)
        return error

    def say(self, what, values_ns):
        v = sorted(values_ns)
        if v:
            print(f"  {what}: n {len(v)}, median {v[len(v) // 2] / 1000:.3f} us, p99 {v[int(len(v) * .99)] / 1000:.3f} us",
                  file=sys.stderr)
