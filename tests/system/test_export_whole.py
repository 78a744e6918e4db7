"""Exports of a whole run: a copy for any SQLite client, figures for OpenTelemetry, a page that opens from a file.

Runs are played from small scripts, so what must come out is what the same catalogue says in SQL."""
import base64
import gzip
import http.server
import json
import math
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "data")
CHROMIUM = shutil.which("chromium")
WRONG_USE, UNREACHED, INCOMPLETE = 2, 3, 5

# Rank 2 of 4 is slow from step 5 on.
SLOW = {"id": "SLOW", "world": 4, "hosts": {"a": "0-1", "b": "2-3"},
        "prog": {"0-1,3": [["rep", 20, [["step"], ["k", 20, "work"], ["coll", "dp", "allreduce", 4096, "f32", 4], ["wait", "dp"], ["sync"]]]],
                 "2": [["rep", 5, [["step"], ["k", 20, "work"], ["coll", "dp", "allreduce", 4096, "f32", 4], ["wait", "dp"], ["sync"]]],
                       ["rep", 15, [["step"], ["k", 24, "work"], ["coll", "dp", "allreduce", 4096, "f32", 4], ["wait", "dp"], ["sync"]]]]}}


def call(*words, **more):
    return subprocess.run([SYNCLINE, *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **more)


class Receiver(http.server.BaseHTTPRequestHandler):
    """An OTLP receiver that keeps what it gets."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), json.loads(body)))
        status, answer = self.server.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Case(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.dir = cls.folder.name
        cls.db = os.path.join(cls.dir, "run.db")
        with open(os.path.join(cls.dir, "slow.json"), "w") as f:
            json.dump(SLOW, f)
        r = call("sim", os.path.join(cls.dir, "slow.json"), "--db", cls.db)
        assert r.returncode == 0, r.stderr

    def sql(self, text, path=None):
        db = sqlite3.connect(f"file:{path or self.db}?mode=ro", uri=True)
        try:
            return db.execute(text).fetchall()
        finally:
            db.close()

    def out(self, name):
        path = os.path.join(self.dir, f"{self.id().rsplit('.', 1)[-1]}-{name}")
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        return path

    def export(self, *words, status=0):
        r = call("export", self.db, *words)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r


class Snapshot(Case):
    def test_the_copy_has_every_row_of_every_view_and_is_one_file(self):
        out = self.out("copy.db")
        self.export("--format", "snapshot", "-o", out)
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith(os.path.basename(out))], [os.path.basename(out)])
        views = [v for v, in self.sql("SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY name")]
        self.assertGreater(len(views), 20)
        for v in views:
            self.assertEqual(self.sql(f'SELECT * FROM "{v}"', out), self.sql(f'SELECT * FROM "{v}"'), v)
        self.assertEqual(self.sql("PRAGMA integrity_check", out), [("ok",)])
        self.assertEqual(self.sql("PRAGMA journal_mode", out), [("delete",)])
        self.assertEqual(call("report", out, "--json").stdout, call("report", self.db, "--json").stdout)

    def test_a_copy_of_a_file_that_is_written_is_of_one_moment(self):
        """A writer adds a pair of rows in every transaction: the copy has pairs."""
        live, out = os.path.join(self.dir, "live.db"), self.out("copy.db")
        shutil.copy(self.db, live)
        writer = sqlite3.connect(live, isolation_level=None)
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE pair (side INTEGER, n INTEGER, filler BLOB)")
        stop = threading.Event()

        def write():
            mine = sqlite3.connect(live, isolation_level=None, timeout=30)
            n = 0
            while not stop.is_set():
                n += 1
                mine.execute("BEGIN IMMEDIATE")
                mine.executemany("INSERT INTO pair VALUES (?, ?, zeroblob(20000))", [(0, n), (1, n)])
                mine.execute("COMMIT")
            mine.close()

        thread = threading.Thread(target=write)
        thread.start()
        try:
            r = call("export", live, "--format", "snapshot", "-o", out)
        finally:
            stop.set()
            thread.join()
            writer.close()
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(self.sql("PRAGMA integrity_check", out), [("ok",)])
        (n0, n1), = self.sql("SELECT total(side = 0), total(side = 1) FROM pair", out)
        self.assertEqual(n0, n1)

    def test_what_is_there_is_not_written_over_and_nothing_is_left_of_a_failure(self):
        out = self.out("there.db")
        with open(out, "w") as f:
            f.write("mine")
        r = self.export("--format", "snapshot", "-o", out, status=WRONG_USE)
        self.assertIn("--force", r.stderr)
        with open(out) as f:
            self.assertEqual(f.read(), "mine")
        self.export("--format", "snapshot", "-o", out, "--force")
        self.assertEqual(self.sql("SELECT count(*) FROM step", out), [(20,)])
        self.export("--format", "snapshot", "-o", self.db, "--force", status=WRONG_USE)
        self.export("--format", "snapshot", "-o", "-", status=WRONG_USE)
        self.export("--format", "snapshot", "-o", os.path.join(self.dir, "no", "x.db"), status=UNREACHED)
        self.assertEqual([n for n in os.listdir(self.dir) if ".part-" in n], [])


def check_otlp(body, case):
    """A body against the protocol's JSON: what a strict receiver refuses. Field names and types are those of
    opentelemetry/proto/metrics/v1/metrics.proto and of its JSON mapping: camel case, 64-bit integers as decimal
    strings, enumerations as integers, no NaN. Returns how many data points there are."""
    def fields(v, must, may=()):
        case.assertIsInstance(v, dict)
        case.assertTrue(set(must) <= set(v) <= set(must) | set(may), (sorted(v), must, may))

    def decimal(v, signed=False):
        case.assertIsInstance(v, str)
        case.assertRegex(v, r"^-?[0-9]+$" if signed else r"^[0-9]+$")
        case.assertTrue(-2**63 <= int(v) < 2**63 if signed else int(v) < 2**64)
        return int(v)

    def number(v):
        case.assertIn(type(v), (int, float))
        case.assertTrue(math.isfinite(v))
        return v

    def attributes(v):
        case.assertIsInstance(v, list)
        keys = []
        for a in v:
            fields(a, ["key", "value"])
            case.assertTrue(isinstance(a["key"], str) and a["key"])
            keys.append(a["key"])
            (kind, value), = a["value"].items()
            {"stringValue": lambda: case.assertIsInstance(value, str), "intValue": lambda: decimal(value, True),
             "doubleValue": lambda: number(value), "boolValue": lambda: case.assertIsInstance(value, bool)}[kind]()
        case.assertEqual(len(keys), len(set(keys)))
        return json.dumps(sorted(v, key=lambda a: a["key"]))

    n = 0
    fields(body, ["resourceMetrics"])
    for resource in body["resourceMetrics"]:
        fields(resource, ["resource", "scopeMetrics"])
        fields(resource["resource"], ["attributes"])
        case.assertIn('"service.name"', attributes(resource["resource"]["attributes"]))
        for scope in resource["scopeMetrics"]:
            fields(scope, ["scope", "metrics"])
            fields(scope["scope"], ["name"], ["version"])
            for m in scope["metrics"]:
                kind, = set(m) - {"name", "unit", "description"}
                case.assertRegex(m["name"], r"^[a-zA-Z][a-zA-Z0-9_./-]{0,254}$")
                case.assertRegex(m["unit"], r"^(1|s|By|By/s|\{[a-z]+\})$")
                data, series = m[kind], []
                fields(data, {"gauge": ["dataPoints"], "histogram": ["dataPoints", "aggregationTemporality"],
                              "sum": ["dataPoints", "aggregationTemporality", "isMonotonic"]}[kind])
                if kind != "gauge":
                    case.assertEqual((type(data["aggregationTemporality"]), data["aggregationTemporality"]), (int, 2))
                for p in data["dataPoints"]:
                    n += 1
                    begin, at = decimal(p["startTimeUnixNano"]), decimal(p["timeUnixNano"])
                    case.assertTrue(0 < begin <= at)
                    series.append(attributes(p["attributes"]))
                    common = ["startTimeUnixNano", "timeUnixNano", "attributes"]
                    if kind == "histogram":
                        fields(p, common + ["count", "bucketCounts", "explicitBounds"], ["sum", "min", "max"])
                        case.assertEqual(sum(map(decimal, p["bucketCounts"])), decimal(p["count"]))
                        case.assertEqual(len(p["bucketCounts"]), len(p["explicitBounds"]) + 1)
                        case.assertEqual([number(b) for b in p["explicitBounds"]], sorted(set(p["explicitBounds"])))
                        case.assertTrue(number(p["min"]) <= number(p["sum"]) / int(p["count"]) * (1 + 1e-9) and p["max"] <= p["sum"] * (1 + 1e-9))
                        continue
                    value, = set(p) - set(common)
                    {"asDouble": lambda: number(p["asDouble"]), "asInt": lambda: decimal(p["asInt"], True)}[value]()
                case.assertEqual(len(series), len(set(series)), m["name"])  # a series has one point
    return n


class Otlp(Case):
    def test_a_strict_receiver_takes_it(self):
        r = self.export("--format", "otlp", "-o", self.out("x.otlp.json"))
        with open(self.out("x.otlp.json")) as f:
            body = json.load(f, parse_constant=lambda v: self.fail(v))
        self.assertEqual(check_otlp(body, self), int(r.stdout.split()[0]))

    def test_what_is_not_known_is_not_there(self):
        """Of a run with values that nobody measured: NULL, an error without a bound, infinity."""
        path = os.path.join(self.dir, "odd.db")
        shutil.copy(self.db, path)
        db = sqlite3.connect(path)
        db.execute("UPDATE raw_rank_step SET excess_ratio = 9e999 WHERE rank = 1")
        db.execute("UPDATE raw_rank_step SET excess_ratio = NULL WHERE rank = 2")
        db.execute("UPDATE raw_clock SET error_ns = 9223372036854775807")
        db.execute("UPDATE raw_group SET name = 'a\"b' || char(7)")
        db.commit()
        db.close()
        r = call("export", path, "--format", "otlp", "-o", "-")
        self.assertEqual(r.returncode, 0, r.stderr)
        body = json.loads(r.stdout, parse_constant=lambda v: self.fail(v))
        self.assertGreater(check_otlp(body, self), 10)
        m = self.metrics(body)
        self.assertEqual({self.about(p)["rank"] for p in m["syncline.rank.excess"]["gauge"]["dataPoints"]}, {0, 3})
        for p in m.get("syncline.clock.error", {"gauge": {"dataPoints": []}})["gauge"]["dataPoints"]:
            self.assertLess(p["asDouble"], 1e6)

    def test_an_imported_run(self):
        files = [os.path.join(SHARED, "h200", f"kineto_ddp_rank{r}.json.gz") for r in (0, 1)]
        if not all(map(os.path.exists, files)):
            self.skipTest("../shared is not there")
        path = os.path.join(self.dir, "imported.db")
        self.assertEqual(call("import", *files, "--db", path).returncode, 0)
        r = call("export", path, "--format", "otlp", "-o", "-")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertGreater(check_otlp(json.loads(r.stdout, parse_constant=lambda v: self.fail(v)), self), 5)

    def metrics(self, body):
        resource, = body["resourceMetrics"]
        scope, = resource["scopeMetrics"]
        names = [m["name"] for m in scope["metrics"]]
        self.assertEqual(len(names), len(set(names)))
        return {m["name"]: m for m in scope["metrics"]}

    @staticmethod
    def about(point):
        return {a["key"]: int(a["value"]["intValue"]) if "intValue" in a["value"] else a["value"].get("stringValue") for a in point["attributes"]}

    def serve(self, status=200, answer=b"{}"):
        server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
        server.got, server.answer = [], (status, answer)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server, f"http://127.0.0.1:{server.server_port}/v1/metrics"

    def test_figures_are_those_of_the_views(self):
        body = json.loads(self.export("--format", "otlp", "-o", "-").stdout)
        m = self.metrics(body)
        p, = m["syncline.step.duration"]["histogram"]["dataPoints"]
        durations = [d for d, in self.sql("SELECT dur_ns FROM step")]
        self.assertEqual(int(p["count"]), len(durations))
        self.assertAlmostEqual(p["sum"], sum(durations) / 1e9)
        self.assertEqual(len(p["bucketCounts"]), len(p["explicitBounds"]) + 1)
        edges = [0] + p["explicitBounds"] + [1e9]
        for i, n in enumerate(p["bucketCounts"]):
            self.assertEqual(int(n), sum(edges[i] < d / 1e9 <= edges[i + 1] for d in durations))
        excess = {self.about(p)["rank"]: p["asDouble"] for p in m["syncline.rank.excess"]["gauge"]["dataPoints"]}
        truth = dict(self.sql("SELECT rank, avg(excess_ratio) FROM rank_step GROUP BY rank"))
        self.assertEqual(set(excess), {0, 1, 2, 3})
        for rank, v in truth.items():
            self.assertAlmostEqual(excess[rank], v)
        found = {self.about(p)["class"]: p["asDouble"] for p in m["syncline.findings"]["gauge"]["dataPoints"]}
        self.assertEqual(found, dict(self.sql("SELECT class, count(*) FROM finding GROUP BY class")))
        self.assertIn("slow.fixed_rank", found)
        self.assertTrue(m["syncline.dropped"]["sum"]["isMonotonic"])
        self.assertEqual(sum(int(p["asInt"]) for p in m["syncline.dropped"]["sum"]["dataPoints"]),
                         self.sql("SELECT total(n) FROM drop_count")[0][0])

    def test_the_longer_ending_says_the_format(self):
        self.assertIn(" points in ", self.export("-o", self.out("y.otlp.json")).stdout)
        self.assertIn(" events in ", self.export("-o", self.out("y.json")).stdout)

    def test_an_endpoint_gets_the_same_body(self):
        server, url = self.serve()
        env = dict(os.environ, OTEL_EXPORTER_OTLP_HEADERS="x-key=secret,x-other=2")
        r = call("export", self.db, "--format", "otlp", "--endpoint", url, env=env)
        self.assertEqual(r.returncode, 0, r.stderr)
        (path, headers, body), = server.got
        self.assertEqual((path, headers["Content-Type"], headers["x-key"], headers["x-other"]),
                         ("/v1/metrics", "application/json", "secret", "2"))
        self.assertEqual(body, json.loads(self.export("--format", "otlp", "-o", "-").stdout))

    def test_a_finished_run_is_posted_once_however_often_was_asked_for(self):
        server, url = self.serve()
        self.export("--format", "otlp", "--endpoint", url, "--every", 1)
        self.assertEqual(len(server.got), 1)

    def test_who_does_not_take_them_is_named(self):
        _, url = self.serve(404)
        self.assertIn("HTTP 404", self.export("--format", "otlp", "--endpoint", url, status=UNREACHED).stderr)
        _, url = self.serve(200, b'{"partialSuccess":{"rejectedDataPoints":"3"}}')
        self.assertIn("left 3 points out", self.export("--format", "otlp", "--endpoint", url, status=INCOMPLETE).stderr)
        r = self.export("--format", "otlp", "--endpoint", "http://127.0.0.1:1/v1/metrics", status=UNREACHED)
        self.assertIn("OTLP receiver", r.stderr)
        self.export("--format", "otlp", "--endpoint", "file:///etc/passwd", status=UNREACHED)
        self.export("--format", "otlp", "--every", 1, status=WRONG_USE)
        self.export("--format", "snapshot", "--endpoint", "http://x/", status=WRONG_USE)


class Html(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.page = os.path.join(cls.dir, "run.html")
        r = call("export", cls.db, "--from", 0, "--to", 12, "-o", cls.page)
        if r.returncode != 0 and "has no page" in r.stderr:
            raise unittest.SkipTest("this build has no page in it: web/build.sh makes it")
        assert r.returncode == 0, r.stderr

    def kept(self):
        with open(self.page) as f:
            text = f.read()
        packed, = re.findall(r'id="kept">([^<]*)</script>', text)
        return text, json.loads(gzip.decompress(base64.b64decode(packed)))

    def show(self, where):
        if not CHROMIUM:
            self.skipTest("there is no chromium")
        r = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000", "--dump-dom",
                            f"file://{self.page}{where}"], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=90)
        return r.stdout

    def test_its_size_is_said_in_steps(self):
        r = self.export("-o", self.out("x.html"))
        self.assertRegex(r.stderr, r"^syncline: all 20 steps: about \d+ kB\n")
        self.assertRegex(r.stdout, r"^20 steps in ")

    def test_nothing_in_it_is_asked_of_anybody(self):
        text, _ = self.kept()
        head = text[:text.index('id="kept"')]
        self.assertNotRegex(head, r'(?:src|href)=')
        self.assertNotRegex(text, r'url\(\s*["\']?https?:')
        self.assertEqual(text.count("</script>"), 2)

    def test_it_has_the_steps_that_were_asked_for_and_the_whole_picture(self):
        _, kept = self.kept()
        self.assertEqual({int(k[5:]) for k in kept["answers"] if k.startswith("step/")}, set(range(13)))
        boot = json.loads(kept["answers"]["boot"])
        self.assertEqual(boot["live"]["state"], "snapshot")
        n = len(boot["heat"]["metrics"]) * len(boot["heat"]["baselines"]) * len(boot["heat"]["aggs"])
        self.assertEqual(sum(k.startswith("heat/") for k in kept["answers"]), n)
        ranks = {r["rank"]: r["self_ns"] for r in json.loads(kept["answers"]["step/7"])["ranks"]}
        self.assertEqual(ranks, dict(self.sql("SELECT rank, self_ns FROM rank_step WHERE step = 7")))

    def test_a_browser_shows_it_without_a_server(self):
        sentence, = self.sql("SELECT sentence FROM finding WHERE class = 'slow.fixed_rank'")[0]
        dom = self.show("#/now")
        self.assertIn("SNAPSHOT", dom)
        self.assertIn(sentence[:40], dom)

    def test_a_step_that_is_not_in_it_says_so(self):
        self.assertIn("Step 7", self.show("#/step?sel=s7"))
        self.assertIn("It was exported with steps 0 to 12", self.show("#/step?sel=s15"))

    def test_the_answers_of_a_hostile_run_do_not_end_their_element(self):
        """Names come from the job: none may become part of the page."""
        case = dict(SLOW, id="</script><script>alert(1)</script>")
        with open(os.path.join(self.dir, "x.json"), "w") as f:
            json.dump(case, f)
        db, page = os.path.join(self.dir, "x.db"), os.path.join(self.dir, "x.html")
        self.assertEqual(call("sim", os.path.join(self.dir, "x.json"), "--db", db).returncode, 0)
        self.assertEqual(call("export", db, "-o", page).returncode, 0)
        with open(page) as f:
            self.assertNotIn("alert(1)", f.read())


if __name__ == "__main__":
    unittest.main()
