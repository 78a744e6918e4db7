"""The command itself: options, databases, exit codes, output, the launcher."""
import csv
import hashlib
import http.server
import io
import json
import os
import pty
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import catalogue
import json_schema

ROOT = catalogue.ROOT
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
SYNCLINE = os.path.join(BUILD, "syncline")
COMMANDS = ["run", "demo", "report", "sql", "status", "serve", "import", "sim", "doctor", "version"]


def environment(**more):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("SYNCLINE_") and k not in ("NO_COLOR", "CLICOLOR_FORCE")}
    env.update(more)
    return env


def call(*words, program=SYNCLINE, env=None, cwd=None, stdin=None, timeout=60, **more):
    return subprocess.run([program, *words], env=environment(**(env or {})), cwd=cwd, input=stdin, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, **more)

# Started from a shell's background this process ignores SIGINT, and so would every job under test.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Folder(unittest.TestCase):
    def setUp(self):
        self._dir = tempfile.TemporaryDirectory()
        self.addCleanup(self._dir.cleanup)
        self.dir = self._dir.name
        self.db = os.path.join(self.dir, "run.db")

    def catalogue(self, *verdicts, **options):
        db = catalogue.create(self.db, **options)
        for v in verdicts:
            catalogue.put_verdict(db, **v)
        db.close()
        return self.db


class Options(unittest.TestCase):
    def test_no_command_is_wrong_use_and_shows_the_commands(self):
        r = call()
        self.assertEqual(r.returncode, 2)
        for c in COMMANDS:
            self.assertIn(f"\n  {c} ", r.stderr)

    def test_a_misspelt_command_is_answered_with_the_nearest(self):
        for wrong, right in (("reprot", "report"), ("stat", "status"), ("dmeo", "demo"), ("docter", "doctor")):
            r = call(wrong)
            self.assertEqual(r.returncode, 2)
            self.assertIn(f"Did you mean: syncline {right}", r.stderr)

    def test_a_strange_command_is_sent_to_help(self):
        r = call("frobnicate")
        self.assertEqual(r.returncode, 2)
        self.assertIn("syncline help", r.stderr)

    def test_every_command_has_help_with_examples(self):
        for c in COMMANDS:
            for words in ((c, "--help"), ("help", c)):
                r = call(*words)
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertIn(f"Usage: syncline {c}", r.stdout)
                self.assertIn("Examples:", r.stdout)

    def test_every_command_refuses_an_unknown_option_by_name(self):
        for c in COMMANDS:
            r = call(c, "--no-such-option")
            self.assertEqual(r.returncode, 2, c)
            self.assertIn("--no-such-option", r.stderr)

    def test_a_number_that_is_none_is_named(self):
        r = call("run", "--level", "9", "--", "true")
        self.assertEqual(r.returncode, 2)
        self.assertIn("--level is a number from 0 to 4, not '9'", r.stderr)
        self.assertEqual(call("run", "--nproc", "0x", "x").returncode, 2)

    def test_version_says_protocol_and_schema(self):
        v = json.loads(call("version", "--json").stdout)
        self.assertRegex(v["version"], r"^\d+\.\d+\.\d+$")
        self.assertEqual(v["schema"], len(os.listdir(os.path.join(ROOT, "sql", "migrations"))))
        self.assertTrue(call("--version").stdout.startswith("syncline " + v["version"]))

    def test_every_command_has_a_manual_page(self):
        for c in COMMANDS[:-1]:
            self.assertTrue(os.path.exists(os.path.join(ROOT, "docs", "man", f"syncline-{c}.1")), c)


class Databases(Folder):
    """What is no catalogue of ours is refused with its cause and a next step."""

    def refused(self, word):
        for words in (("report", self.db), ("sql", self.db, "select 1"), ("serve", self.db)):
            r = call(*words)
            self.assertEqual(r.returncode, 3, words)
            self.assertEqual(r.stdout, "")
            self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)
            self.assertIn(word, r.stderr)
            self.assertIn(self.db, r.stderr)

    def test_missing(self):
        self.refused("there is no file")

    def test_a_folder(self):
        os.mkdir(self.db)
        self.refused("is not a file")

    def test_empty(self):
        open(self.db, "w").close()
        self.refused("wrote nothing")

    def test_not_a_database(self):
        with open(self.db, "w") as f:
            f.write("no database at all\n" * 100)
        self.refused("is not a database")

    def test_foreign(self):
        db = sqlite3.connect(self.db)
        db.execute("create table photos (name)")
        db.commit()
        db.close()
        self.refused("not one of syncline's")

    def test_newer(self):
        db = sqlite3.connect(self.catalogue())
        db.execute("pragma user_version = 4711")
        db.close()
        self.refused("newer release")

    def test_unfinished(self):
        db = sqlite3.connect(self.catalogue())
        db.execute("drop view finding")
        db.commit()
        db.close()
        self.refused("has no views")

    def test_cut_off(self):
        self.catalogue()
        os.truncate(self.db, os.path.getsize(self.db) // 2)
        r = call("report", self.db)
        self.assertEqual(r.returncode, 3)
        self.assertIn("malformed", r.stderr)

    def test_unreadable_as_another_user(self):
        if os.getuid() != 0:
            self.skipTest("needs root to become somebody else")
        self.catalogue()
        os.chmod(self.dir, 0o755)
        os.chmod(self.db, 0o600)
        # Through a copy: the build folder may lie where nobody else can look.
        program = shutil.copy(SYNCLINE, os.path.join(self.dir, "syncline"))
        r = call("report", self.db, program=program, user=65534, group=65534, extra_groups=[])
        self.assertEqual(r.returncode, 3)
        self.assertIn("Permission denied", r.stderr)

    def test_a_folder_that_cannot_be_written_is_no_hindrance(self):
        if os.getuid() != 0:
            self.skipTest("needs root to become somebody else")
        self.catalogue(wal=True)
        self.assertFalse(os.path.exists(self.db + "-wal"))
        os.chmod(self.db, 0o644)
        program = shutil.copy(SYNCLINE, os.path.join(self.dir, "syncline"))
        os.chmod(self.dir, 0o555)
        r = call("report", self.db, program=program, user=65534, group=65534, extra_groups=[])
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_what_a_live_run_committed_last_is_read(self):
        db = catalogue.create(self.db, wal=True)
        self.addCleanup(db.close)
        db.execute("pragma wal_autocheckpoint = 0")
        catalogue.put_verdict(db)
        self.assertGreater(os.path.getsize(self.db + "-wal"), 0)
        r = call("report", self.db)
        self.assertEqual(r.returncode, 1)
        self.assertIn("Rank 2 is slow in forward.", r.stdout)

    def test_odd_characters_in_a_name_are_no_parameters(self):
        odd = os.path.join(self.dir, "run?mode=rwc#%41.db")
        shutil.move(self.catalogue(), odd)
        self.assertEqual(call("report", odd).returncode, 0)


class Report(Folder):
    def status(self, *verdicts, **options):
        path = self.catalogue(*verdicts, **options)
        text, data = call("report", path), call("report", path, "--json")
        self.assertEqual(text.returncode, data.returncode, text.stderr + data.stderr)
        return data.returncode

    def test_nothing_found_is_0(self):
        self.assertEqual(self.status(), 0)

    def test_a_notice_alone_is_0(self):
        self.assertEqual(self.status({"severity": "notice"}), 0)

    def test_a_finding_is_1(self):
        self.assertEqual(self.status({"confidence": "likely"}), 1)

    def test_too_close_is_4(self):
        self.assertEqual(self.status({"confidence": "too_close"}), 4)

    def test_lost_events_are_5(self):
        self.assertEqual(self.status(lost=3), 5)

    def test_a_missing_rank_is_5(self):
        self.assertEqual(self.status(seen=3), 5)

    def test_a_rank_whose_end_nobody_saw_is_5(self):
        self.assertEqual(self.status(still=1), 5)
        self.assertIn("Ranks whose end was not seen: 1.", call("report", self.db).stdout)

    def test_a_restarted_rank_counts_by_its_newest_process(self):
        db = sqlite3.connect(self.catalogue(still=1))
        catalogue.put(db, "raw_process", process_id=9, host_id=1, agent=1, unique_id=9, pid=109, rank=0, local_rank=0,
                      world_size=4, restart_count=1, host_started_ns=5, state="left", n_dropped=0)
        db.commit()
        db.close()
        self.assertEqual(call("report", self.db).returncode, 0)

    def test_without_any_rank_the_next_step_is_named(self):
        self.assertIn("syncline doctor", call("report", self.catalogue(seen=0, steps=0)).stdout)

    def test_insufficient_is_5(self):
        self.assertEqual(self.status({"confidence": "insufficient"}), 5)

    def test_no_rank_at_all_is_5(self):
        self.assertEqual(self.status(seen=0, steps=0), 5)

    def test_a_finding_beats_too_close_beats_incomplete(self):
        self.assertEqual(self.status({"key": "a"}, {"key": "b", "confidence": "too_close"}, lost=3), 1)
        os.unlink(self.db)
        self.assertEqual(self.status({"confidence": "too_close"}, lost=3), 4)

    def test_json_fits_the_schema_full_and_empty(self):
        with open(os.path.join(ROOT, "docs", "report.schema.json"), encoding="utf-8") as f:
            schema = json.load(f)
        for options in ({}, {"seen": 0, "steps": 0}, {"lost": 2, "seen": 2}):
            path = self.catalogue({"key": "a"}, {"key": "b", "severity": "notice"}, **options)
            report = json.loads(call("report", path, "--json").stdout)
            self.assertEqual(json_schema.problems(report, schema), [])
            os.unlink(path)

    def test_json_numbers_are_those_of_the_tables(self):
        report = json.loads(call("report", self.catalogue({}), "--json").stdout)
        self.assertEqual(report["steps"]["n"], 20)
        self.assertEqual(report["steps"]["median_ns"], 50_000_000)
        self.assertEqual(report["steps"]["breakdown"],
                         {"data_ns": 1_000_000, "forward_ns": 15_000_000, "backward_ns": 20_000_000,
                          "exposed_comm_ns": 8_000_000, "optimizer_ns": 3_000_000, "eval_ns": 0, "kernels_ns": None,
                          "idle_ns": 3_000_000})
        self.assertEqual([r["rank"] for r in report["ranks"]], [0, 1, 2, 3])
        rank = report["ranks"][1]
        self.assertEqual(rank["total_ns"], rank["idle_ns"] + rank["compute_ns"] + rank["noncompute_ns"])
        self.assertEqual(rank["comm_ns"], 20 * 11_000_000)
        self.assertAlmostEqual(rank["overlap_ratio"], 1 - 8 / 11, places=6)
        self.assertEqual(report["collectives"]["matched"], 20)
        self.assertEqual(report["collectives"]["last_arrival"][0]["call"], "all_reduce#0")
        hosts = {h["host"]: h for h in report["clock"]["hosts"]}
        self.assertEqual(hosts["hosta"]["error_ns"], 0)
        self.assertEqual(hosts["hostb"]["hi_ns"] - hosts["hostb"]["lo_ns"], 50_000)
        self.assertEqual(hosts["hostb"]["ranks"], [1, 3])
        self.assertEqual(report["verdicts"][0]["detected_after_ns"], 150_000_000)

    def test_worse_comes_first(self):
        path = self.catalogue({"key": "a", "cost": 0.1}, {"key": "b", "cost": 0.5}, {"key": "c", "severity": "stuck"},
                              {"key": "d", "severity": "notice", "cost": 9})
        verdicts = json.loads(call("report", path, "--json").stdout)["verdicts"]
        self.assertEqual([(v["severity"], v["cost_ratio"]) for v in verdicts],
                         [("stuck", 0.4), ("slow", 0.5), ("slow", 0.1), ("notice", 9)])

    def test_text_puts_findings_first_with_margin_error_and_coverage(self):
        text = call("report", self.catalogue({})).stdout
        order = [text.index(s) for s in ("Rank 2 is slow in forward.", "margin 18.0 ms ± 400 us (soft clock bound)",
                                         "rules out: slow.global", "\nSteps\n", "\nRanks", "\nCoverage\n",
                                         "4 of 4 ranks seen, 4000 events kept, 0 lost")]
        self.assertEqual(order, sorted(order))

    def test_color_only_where_it_is_wanted(self):
        path = self.catalogue({})
        self.assertNotIn("\033", call("report", path).stdout)
        self.assertIn("\033", call("report", path, env={"CLICOLOR_FORCE": "1"}).stdout)
        self.assertNotIn("\033", call("report", path, env={"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}).stdout)
        self.assertIn("\033", call("report", path, "--color=always", env={"NO_COLOR": "1"}).stdout)
        self.assertEqual(call("report", path, "--color=pink").returncode, 2)

    def test_color_on_a_terminal(self):
        path, (ours, theirs) = self.catalogue({}), pty.openpty()
        subprocess.run([SYNCLINE, "report", path], stdout=theirs, env=environment(TERM="xterm"), timeout=30)
        os.close(theirs)
        self.assertIn(b"\033", os.read(ours, 65536))
        os.close(ours)

    def test_a_hostile_sentence_does_not_reach_the_terminal(self):
        path = self.catalogue({"sentence": "a\033[2Jb\u009b31mc\x07d"})
        out = call("report", path).stdout
        self.assertIn("a\\x1b[2Jb\\x9b31mc\\x07d", out)

    def test_a_closed_pipe_ends_it_silently(self):
        p = subprocess.Popen([SYNCLINE, "sql", self.catalogue(steps=2000), "--csv", "select * from rank_step, rank_info"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        p.stdout.readline()
        p.stdout.close()
        self.assertEqual(p.stderr.read(), b"")
        p.stderr.close()
        self.assertEqual(p.wait(30), -signal.SIGPIPE)

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w") as full:
            r = subprocess.run([SYNCLINE, "report", self.catalogue(), "--json"], stdout=full, stderr=subprocess.PIPE,
                               text=True, env=environment(), timeout=30)
        self.assertEqual(r.returncode, 3)
        self.assertIn("No space left", r.stderr)


class Sql(Folder):
    def query(self, text, *options, **more):
        if not os.path.exists(self.db):
            self.catalogue({})
        return call("sql", self.db, *options, text, **more)

    def files(self):
        found = {}
        for name in os.listdir(self.dir):
            with open(os.path.join(self.dir, name), "rb") as f:
                found[name] = hashlib.sha256(f.read()).hexdigest()
        return found

    def test_csv_is_rfc_4180(self):
        r = self.query("select 1 a, 'x,\"y\"' \"b,c\", null d, x'00ff' e, 2.5 f", "--csv")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(list(csv.reader(io.StringIO(r.stdout))),
                         [["a", "b,c", "d", "e", "f"], ["1", 'x,"y"', "", "00ff", "2.5"]])

    def test_json_keeps_types_and_big_integers(self):
        r = self.query("select 9007199254740993 a, 'x' b, null c, 0.1 d, x'ff' e union all select 2,3,4,5,6", "--json")
        self.assertEqual(json.loads(r.stdout)[0], {"a": 9007199254740993, "b": "x", "c": None, "d": 0.1, "e": "ff"})
        self.assertEqual(json.loads(self.query("select 1 a where 0", "--json").stdout), [])

    def test_table_is_aligned_and_bounded(self):
        r = self.query("select rank, count(*) n from rank_step group by rank", "--table")
        self.assertEqual([line.split() for line in r.stdout.splitlines()],
                         [["rank", "n"]] + [[str(i), "20"] for i in range(4)])
        r = self.query("with recursive n(i) as (select 1 union all select i + 1 from n limit 10001) select * from n", "--table")
        self.assertEqual(len(r.stdout.splitlines()), 10001)
        self.assertIn("--csv or --json", r.stderr)

    def test_the_query_comes_from_stdin_too(self):
        self.catalogue()
        r = call("sql", self.db, stdin="-- two\nselect 1 a;\nselect 2 b;")
        self.assertEqual(r.stdout.split(), ["a", "1", "b", "2"])

    def test_views_of_json_work_under_the_guard(self):
        r = self.query("select count(*) n from collective_rank", "--json")
        self.assertEqual(json.loads(r.stdout), [{"n": 80}], r.stderr)

    def test_every_public_view_can_be_read(self):
        db = sqlite3.connect(self.catalogue({}))
        views = [r[0] for r in db.execute("select name from sqlite_master where type = 'view'")]
        self.assertGreater(len(views), 15)
        for v in views:
            self.assertEqual(self.query(f'select * from "{v}" limit 3').returncode, 0, v)

    def test_the_schema_shows_columns_with_unit_and_meaning(self):
        rows = json.loads(self.query("x", "--schema", "--json").stdout)
        row = [r for r in rows if r["view"] == "rank_step" and r["column"] == "self_ns"][0]
        self.assertEqual(row["unit"], "ns")
        self.assertTrue(row["meaning"])

    def test_what_is_not_reading_is_refused_with_a_sentence_and_changes_nothing(self):
        self.catalogue({})
        extra = os.path.join(self.dir, "extra.db")
        refused = {
            f"attach '{extra}' as x": "ATTACH",
            "detach main": "ATTACH",
            "pragma query_only = 0": "PRAGMA",
            "pragma journal_mode = delete": "PRAGMA",
            "select * from pragma_table_info('run')": "never changed",
            "insert into raw_meta values ('a', 1)": "never changed",
            "update raw_run set name = 'x'": "never changed",
            "delete from raw_step": "never changed",
            "create table t (a)": "never changed",
            "create temp table t (a)": "never changed",
            "drop view run": "never changed",
            f"vacuum into '{extra}'": "never changed",
            "begin": "transactions",
            "savepoint a": "transactions",
            "select load_extension('libm.so.6')": "function",
        }
        before = self.files()
        for statement, word in refused.items():
            r = self.query(statement)
            self.assertEqual(r.returncode, 2, statement + r.stdout + r.stderr)
            self.assertIn("refused: ", r.stderr, statement)
            self.assertIn(word, r.stderr, statement)
        self.assertEqual(before, self.files())

    def test_endless_work_is_stopped(self):
        begin = time.monotonic()
        r = self.query("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
                       "--timeout", "1")
        self.assertEqual(r.returncode, 3)
        self.assertIn("stopped after 1 s", r.stderr)
        self.assertLess(time.monotonic() - begin, 15)

    def test_a_huge_value_is_refused(self):
        for q in ("select zeroblob(1000000000)", "select hex(zeroblob(100000000))"):
            r = self.query(q)
            self.assertEqual(r.returncode, 2, r.stderr)
            self.assertIn("larger than is allowed", r.stderr)

    def test_a_wrong_statement_shows_where_the_views_are(self):
        r = self.query("select * from nosuch")
        self.assertEqual(r.returncode, 2)
        self.assertIn("no such table: nosuch", r.stderr)
        self.assertIn("--schema", r.stderr)
        self.assertEqual(self.query("-- nothing").returncode, 2)


class Launcher(Folder):
    """`run` where only the job matters: a copy of the program alone, so no service can start."""

    def setUp(self):
        super().setUp()
        self.program = shutil.copy(SYNCLINE, os.path.join(self.dir, "syncline"))

    def run_job(self, *words, **more):
        return call("run", *words, program=self.program, cwd=self.dir, **more)

    def test_without_agent_and_collector_the_job_runs_the_same(self):
        job = ["sh", "-c", "cat; echo out; echo err >&2; env | grep -c SYNCLINE_; exit 5"]
        bare = subprocess.run(job, input="in\n", text=True, capture_output=True, env=environment())
        r = self.run_job("--", *job, stdin="in\n")
        self.assertEqual((r.returncode, r.stdout), (bare.returncode, bare.stdout))
        self.assertIn("runs without the probe", r.stderr)
        self.assertTrue(r.stderr.endswith("err\n"))
        self.assertEqual(os.listdir(self.dir), ["syncline"])

    def test_the_status_is_the_jobs_own(self):
        for status in (0, 1, 3, 77):
            self.assertEqual(self.run_job("--", "sh", "-c", f"exit {status}").returncode, status)
        self.assertEqual(self.run_job("--", "sh", "-c", "kill -9 $$").returncode, 128 + 9)
        self.assertEqual(self.run_job("sh", "-c", "kill -TERM $$").returncode, 128 + 15)

    def test_what_cannot_be_run_is_said_as_a_shell_would(self):
        r = self.run_job("--", "/no/such/program")
        self.assertEqual(r.returncode, 127)
        self.assertIn("cannot run /no/such/program: No such file", r.stderr)
        self.assertEqual(self.run_job("--", "/etc/passwd").returncode, 126)
        self.assertEqual(self.run_job("--nproc", "2", "--", "/no/such/program").returncode, 127)

    def test_the_jobs_options_are_its_own(self):
        r = self.run_job("echo", "--db", "x", "--", "-n")
        self.assertEqual(r.stdout, "--db x -- -n\n")

    def test_no_job_is_wrong_use(self):
        self.assertEqual(self.run_job("--").returncode, 2)
        self.assertEqual(self.run_job("--db", "x", "--collector", "tcp://h:1", "--", "true").returncode, 2)

    def test_a_database_of_another_run_is_not_touched(self):
        self.catalogue()
        r = self.run_job("--db", self.db, "--", "touch", os.path.join(self.dir, "ran"))
        self.assertEqual(r.returncode, 3)
        self.assertIn("one database holds one run", r.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "ran")))

    def test_ranks_get_torchs_environment_and_a_prefix(self):
        r = self.run_job("--nproc", "3", "--", "sh", "-c",
                         'echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT"; echo e$RANK >&2')
        self.assertEqual(r.returncode, 0)
        lines = sorted(r.stdout.splitlines())
        port = lines[0].split()[-1]
        self.assertTrue(1024 <= int(port) <= 65535)
        self.assertEqual(lines, [f"[{i}] {i} {i} 3 3 127.0.0.1 {port}" for i in range(3)])
        for i in range(3):
            self.assertIn(f"[{i}] e{i}\n", r.stderr)

    def test_long_and_unfinished_lines_arrive_whole(self):
        r = self.run_job("--nproc", "1", "--", "sh", "-c", "head -c 20000 /dev/zero | tr '\\0' x; printf '\\nend'")
        self.assertEqual(r.stdout.replace("\n[0] ", "\n").replace("[0] ", "").replace("\n", ""), "x" * 20000 + "end")

    def test_a_dead_rank_ends_the_others_and_gives_its_status(self):
        begin = time.monotonic()
        r = self.run_job("--nproc", "3", "--", "sh", "-c", '[ $RANK = 1 ] && { sleep 0.3; exit 9; }; exec sleep 60')
        self.assertEqual(r.returncode, 9)
        self.assertIn("rank 1 ended with exit status 9", r.stderr)
        self.assertLess(time.monotonic() - begin, 20)
        r = self.run_job("--nproc", "2", "--", "sh", "-c", '[ $RANK = 0 ] && kill -9 $$; exec sleep 60')
        self.assertEqual(r.returncode, 128 + 9)
        self.assertIn("rank 0 was killed by signal 9", r.stderr)

    def start(self, *words):
        return subprocess.Popen([self.program, "run", *words], cwd=self.dir, env=environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def test_signals_reach_the_job_once(self):
        for signo, name in ((signal.SIGTERM, "TERM"), (signal.SIGINT, "INT"), (signal.SIGUSR1, "USR1")):
            p = self.start("--", "sh", "-c", f"trap 'echo got; n=$((n+1))' {name}; echo ready; "
                           "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; exit $n")
            self.assertEqual(p.stdout.readline(), "ready\n")
            p.send_signal(signo)
            out, _ = p.communicate(timeout=30)
            self.assertEqual((out, p.returncode), ("got\n", 1), name)

    def test_ctrl_c_reaches_a_plain_job_once(self):
        ours, theirs = pty.openpty()
        job = ("trap 'n=$((n+1))' INT; echo ready; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; exit $n")
        code = ("import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
                "os.execv(sys.argv[1], sys.argv[1:])")
        p = subprocess.Popen([sys.executable, "-c", code, self.program, "run", "--", "sh", "-c", job], cwd=self.dir,
                             env=environment(), stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        seen = b""
        while b"ready" not in seen:
            seen += os.read(ours, 4096)
        os.write(ours, b"\x03")
        self.assertEqual(p.wait(30), 1)
        os.close(ours)

    def test_a_signal_for_the_launcher_ends_all_ranks(self):
        p = self.start("--nproc", "2", "--", "sh", "-c", "echo $$; exec sleep 60")
        pids = [int(p.stdout.readline().split()[1]) for _ in range(2)]
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=30)
        self.assertEqual(p.returncode, 128 + 15)
        for pid in pids:
            self.assertRaises(ProcessLookupError, os.kill, pid, 0)

    def test_no_rank_outlives_a_killed_launcher(self):
        p = self.start("--nproc", "2", "--", "sh", "-c", "echo $$; exec sleep 60")
        pids = [int(p.stdout.readline().split()[1]) for _ in range(2)]
        p.kill()
        p.communicate(timeout=30)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and any(os.path.exists(f"/proc/{i}/exe") and
                                                  os.access(f"/proc/{i}/exe", os.R_OK) for i in pids):
            time.sleep(0.05)
        for pid in pids:
            self.assertRaises(OSError, os.readlink, f"/proc/{pid}/exe")

    def test_a_closed_stdout_does_not_end_the_job(self):
        mark = os.path.join(self.dir, "mark")
        p = self.start("--nproc", "1", "--", "sh", "-c", f"yes | head -100000; echo done > {mark}")
        p.stdout.readline()
        p.stdout.close()
        p.stderr.read()
        p.stderr.close()
        self.assertEqual(p.wait(60), 0)
        self.assertTrue(os.path.exists(mark))


class WithServices(Folder):
    """`run` with its collector and agent, whatever becomes of them."""

    def training(self, ranks, steps, *options):
        script = os.path.join(ROOT, "tests", "system", "spine_train.py")
        return subprocess.Popen([SYNCLINE, "run", "--db", self.db, "--nproc", str(ranks), "--", "/usr/bin/python3", script,
                                 self.dir, str(steps), *options], env=environment(OMP_NUM_THREADS="1"),
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def child(self, p, name):
        with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
            for pid in f.read().split():
                with open(f"/proc/{pid}/cmdline", "rb") as c:
                    if os.path.basename(c.read().split(b"\0")[0]).decode() == name:
                        return int(pid)
        return None

    def await_step(self, step):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                db = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
                n = db.execute("select max(step) from step").fetchone()[0]
                db.close()
                if n is not None and n >= step:
                    return
            except sqlite3.Error:
                pass
            time.sleep(0.1)
        self.fail(f"step {step} never arrived")

    def complete(self, ranks, steps):
        db = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
        self.assertEqual(db.execute("select count(*) from rank_step where step < ?", (steps,)).fetchone()[0], ranks * steps)
        self.assertEqual(db.execute("select coalesce(sum(n), 0) from drop_count").fetchone()[0], 0)
        db.close()

    def killed(self, name):
        p = self.training(2, 80, "pace=20")
        self.await_step(10)
        time.sleep(1)  # one that dies in its first second is given up on purpose
        os.kill(self.child(p, name), signal.SIGKILL)
        _, said = p.communicate(timeout=180)
        self.assertEqual(p.returncode, 0, said)
        self.assertIn("killed by signal 9); starting it again. The job goes on", said)
        self.complete(2, 80)

    def test_a_killed_collector_is_started_again_and_nothing_is_missing(self):
        self.killed("syncline-collector")

    def test_a_killed_agent_is_started_again_and_nothing_is_missing(self):
        self.killed("syncline-agent")

    def test_a_disk_that_fills_up_is_said_while_the_job_runs_and_once(self):
        if subprocess.run(["unshare", "--mount", "--map-root-user", "true"], capture_output=True).returncode != 0:
            self.skipTest("this user may not make a mount namespace")
        disk = os.path.join(self.dir, "disk")
        os.mkdir(disk)
        self.db = os.path.join(disk, "run.db")
        script = os.path.join(self.dir, "go.sh")
        said = os.path.join(self.dir, "said")
        with open(script, "w", encoding="ascii") as f:
            f.write("""set -eu
mount -t tmpfs -o size=16m tmpfs "$1/disk"
"$2" run --db "$1/disk/run.db" --nproc 2 -- /usr/bin/python3 "$3" "$1" 250 pace=50 >/dev/null 2>"$1/said" &
job=$!
dir=$1
await() { n=0; until "$@"; do n=$((n + 1)); [ $n -lt 300 ] && kill -0 $job || exit 9; sleep 0.1; done; }
await [ -s "$dir/disk/run.db-wal" ]
sleep 1
dd if=/dev/zero of="$1/disk/ballast" bs=4k 2>/dev/null || true
await grep -q "not storing" "$dir/said"
kill -0 $job
rm "$1/disk/ballast"
await grep -q "storing again" "$dir/said"
kill -0 $job
wait $job
""")
        r = subprocess.run(["unshare", "--mount", "--map-root-user", "sh", script, self.dir, SYNCLINE,
                            os.path.join(ROOT, "tests", "system", "spine_train.py")],
                           env=environment(OMP_NUM_THREADS="1"), capture_output=True, text=True, timeout=180)
        with open(said, encoding="utf-8") as f:
            lines = f.read()
        self.assertEqual(r.returncode, 0, r.stderr + lines)
        self.assertEqual(lines.count("not storing: No space is left for"), 1, lines)
        self.assertEqual(lines.count("storing again"), 1, lines)

    def test_a_collector_that_cannot_write_does_not_hinder_the_job(self):
        r = call("run", "--db", os.path.join(self.dir, "no", "such", "folder", "x.db"), "--", "sh", "-c", "echo out; exit 6")
        self.assertEqual((r.returncode, r.stdout), (6, "out\n"))
        self.assertIn("the collector did not start. The job runs without the probe", r.stderr)

    def test_a_taken_port_does_not_hinder_the_job_and_is_named(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            address = "127.0.0.1:%d" % s.getsockname()[1]
            r = call("run", "--db", self.db, "--http", address, "--", "sh", "-c", "exit 6")
        self.assertEqual(r.returncode, 6)
        self.assertIn("the collector did not start", r.stderr)
        self.assertIn(address, r.stderr)

    def test_a_job_that_is_no_training_ends_at_once_and_leaves_nothing(self):
        begin = time.monotonic()
        r = call("run", "--db", self.db, "--", "sh", "-c", "echo $SYNCLINE_DIR; stat -c %a $SYNCLINE_DIR")
        self.assertEqual(r.returncode, 0)
        self.assertLess(time.monotonic() - begin, 15)
        folder, mode = r.stdout.split()
        self.assertEqual(mode, "770")
        self.assertFalse(os.path.exists(folder))
        self.assertIn("0 of an unknown number of ranks seen", r.stderr)
        self.assertEqual(call("report", self.db).returncode, 5)

    def test_the_jobs_own_pythonpath_stays_behind_ours(self):
        r = call("run", "--db", self.db, "--level", "1", "--", "sh", "-c", "echo $PYTHONPATH; echo $SYNCLINE_LEVEL",
                 env={"PYTHONPATH": "/a:/b"})
        self.assertEqual(r.stdout.split(), [os.path.join(BUILD, "agent", "python") + ":/a:/b", "1"])


class WithACollectorOfSomebodyElse(Folder):
    """`run --collector`: what it refuses or misses is said, and kept for later."""

    def setUp(self):
        super().setUp()
        self.tokens = {}
        for name in ("sesame", "wrong"):
            self.tokens[name] = os.path.join(self.dir, name)
            with open(self.tokens[name], "w", encoding="ascii") as f:
                f.write(name + "\n")

    def collector(self, *options, listen="tcp://127.0.0.1:0"):
        ready, write = os.pipe()
        p = subprocess.Popen([os.path.join(BUILD, "syncline-collector"), "--db", self.db, "--listen", listen,
                              "--http", "127.0.0.1:0", "--ready-fd", str(write), *options], pass_fds=[write],
                             env=environment(), stderr=subprocess.DEVNULL)
        self.addCleanup(p.wait, 30)
        self.addCleanup(p.terminate)
        os.close(write)
        with os.fdopen(ready, encoding="ascii") as f:
            self.url = json.loads(f.readline())["listen"]
        return p

    def run_writer(self, url, *options, events=2000):
        writer = os.path.join(BUILD, "tests", "system", "probe_writer")
        r = call("run", "--collector", url, *options, "--", writer, "1", str(events), "2000",
                 env={"TMPDIR": self.dir, "RANK": "0"})
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(json.loads(r.stdout)["written"], events)
        return r

    def n_events(self):
        with sqlite3.connect(f"file:{self.db}?mode=ro", uri=True) as db:
            return db.execute("select coalesce(sum(n_events), 0) from raw_chunk").fetchone()[0]

    def ship(self, said):
        """The command that was shown, as it was shown."""
        words = said[said.index("syncline-agent --collector"):].splitlines()[0].split()
        words[0] = os.path.join(BUILD, "syncline-agent")
        r = subprocess.run([*words, "--dir", self.dir], env=environment(), capture_output=True, text=True, timeout=60)
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_what_came_while_no_collector_was_there_is_shipped_later(self):
        url = f"ipc://{self.dir}/later"  # a free port might be taken until then
        said = self.run_writer(url).stderr
        self.assertIn(f"the collector {url} has not got all of the data", said)
        self.assertNotIn("the data is at", said)
        collector = self.collector(listen=url)
        self.ship(said)
        collector.terminate()
        self.assertEqual(collector.wait(30), 0)
        self.assertEqual(self.n_events(), 2000)

    def test_a_wrong_or_missing_token_is_said_with_what_to_do_and_keeps_what_there_is(self):
        self.collector("--token-file", self.tokens["sesame"])
        for options, cause in ((("--token-file", self.tokens["wrong"]), "token is wrong"), ((), "wants a token")):
            said = self.run_writer(self.url, "--run", "job", *options).stderr
            self.assertIn(cause, said)
            self.assertIn("--token-file", said)
            self.assertIn("The job goes on untraced", said)
            self.assertIn("has not got all of the data", said)
            kept = said[said.index("is kept in ") + len("is kept in "):].split()[0].rstrip(".")
            self.assertTrue(os.listdir(kept))
        self.assertIn("the data is at the collector",
                      self.run_writer(self.url, "--run", "job", "--token-file", self.tokens["sesame"]).stderr)

    def test_another_run_is_refused_with_what_to_do(self):
        self.collector("--run", "first")
        said = self.run_writer(self.url, "--run", "second").stderr
        self.assertIn("keeps run first", said)
        self.assertIn("another --db", said)
        self.assertIn("has not got all of the data", said)

    def test_the_level_of_the_job_is_kept_where_the_collector_has_no_opinion(self):
        self.collector("--run", "job")
        self.assertEqual(json.loads(self.run_writer(self.url, "--run", "job", "--level", "1").stdout)["level"], 1)

    def test_the_collectors_level_wins(self):
        self.collector("--run", "job", "--level", "3")
        self.assertEqual(json.loads(self.run_writer(self.url, "--run", "job", "--level", "1").stdout)["level"], 3)

    def test_a_run_of_its_own_collector_keeps_its_level(self):
        r = call("run", "--db", self.db, "--level", "1", "--", os.path.join(BUILD, "tests", "system", "probe_writer"),
                 "1", "2000", "2000")
        self.assertEqual(json.loads(r.stdout)["level"], 1)


class Clocks(Folder):
    def fill(self):
        db = catalogue.create(self.db)
        for second in range(120):
            catalogue.put(db, "raw_clock", host_id=2, at_ns=catalogue.START_NS + second * 10**9 - 200 * 10**9,
                          offset_ns=catalogue.START_NS + 77, error_ns=60_000 if second == 30 else 25_000, rtt_ns=50_000,
                          quality="refused" if second == 30 else "good", soft_ns=400, skew_ppb=-1234.5,
                          status="undecided" if second == 30 else "anchored")
        catalogue.put(db, "raw_clock_path", host_id=2, at_ns=catalogue.START_NS, way="stream", stamps="program",
                      why="no answer: is UDP let through?", n_sent=10, n_received=0, n_answered=0, n_exchanges=0,
                      n_refused=0, wish=12)
        catalogue.put(db, "raw_clock_step", host_id=2, host_from_ns=5 * 10**9, host_to_ns=6 * 10**9, kind="wall",
                      step_ns=-3_200_000_000, error_ns=800)
        catalogue.put(db, "raw_clock_pair", host_id=2, reference_id=1, at_ns=catalogue.START_NS, correction_ns=-38_500,
                      width_ns=37_000, probe_width_ns=184_000, soft_ns=4_100, basis="exits")
        catalogue.put(db, "raw_contradiction", group_id=1, seq=17, early_host_id=1, late_host_id=2,
                      at_ns=catalogue.START_NS, impossible_ns=9_100_000, against="probes", lifted_ns=None)
        catalogue.put(db, "raw_snapshot", host_id=2, host_ns=7 * 10**9, half_ns=100, mono_ns=1,
                      real_ns=catalogue.START_NS + 77 + 7 * 10**9 + 11_560_000_000, boot_ns=1, tick_source=None, tick=None)
        db.commit()
        db.close()

    def test_each_host_is_told_with_its_errors(self):
        self.fill()
        r = call("clocks", self.db)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        for word in ("hosta", "the collector's own clock", "hostb", "25.0 us", "60.0 us", "-1.23 ppm", "+11.6 s", "anchored",
                     "in the stream of events", "no clock probe gets through", "is UDP let through?",
                     "its wall clock was set by -3.20 s", "-38.5 us", "37.0 us", "184 us", "exits", "collective 17 of ",
                     "hosta left it 9.10 ms before hostb had entered it, against probes; what it says about clocks"):
            self.assertIn(word, r.stdout)
        self.assertNotIn("Over time", r.stdout)

    def test_json_has_all_of_it(self):
        self.fill()
        r = call("clocks", self.db, "--json", "--history")
        v = json.loads(r.stdout)
        b = next(h for h in v["hosts"] if h["host"] == "hostb")
        self.assertEqual((b["error_ns"], b["worst_error_ns"], b["soft_ns"], b["skew_ppb"], b["wall_ns"], b["ranks"]),
                         (25_000, 60_000, 400, -1234.5, 11_560_000_000, [1, 3]))
        self.assertEqual((b["n_refused_estimates"], b["quality"]), (1, "good"))
        self.assertEqual([(s["kind"], s["step_ns"], s["at_ns"]) for s in v["steps"]],
                         [("wall", -3_200_000_000, 6 * 10**9 + catalogue.START_NS + 77)])
        self.assertEqual([(p["host"], p["reference"], p["correction_ns"], p["width_ns"], p["basis"]) for p in v["pairs"]],
                         [("hostb", "hosta", -38_500, 37_000, "exits")])
        self.assertEqual([(c["seq"], c["early_host"], c["late_host"], c["impossible_ns"], c["lifted_ns"])
                          for c in v["contradictions"]], [(17, "hosta", "hostb", 9_100_000, None)])
        self.assertEqual(sum(p["n_estimates"] for p in v["history"]), 121)
        self.assertEqual(sum(p["n_refused"] for p in v["history"]), 1)
        self.assertEqual(max(p["worst_error_ns"] for p in v["history"]), 60_000)
        self.assertLessEqual(len(v["history"]), 60)

    def test_a_host_without_a_bound_is_incomplete_data(self):
        db = catalogue.create(self.db)
        db.execute("delete from raw_clock")
        db.commit()
        db.close()
        r = call("clocks", self.db)
        self.assertEqual(r.returncode, 5, r.stdout)
        self.assertIn("void", r.stdout)

    def test_a_catalogue_of_schema_1_is_read(self):
        db = sqlite3.connect(self.db)
        db.executescript(catalogue.sql_text("migrations", "0001_base.sql"))
        db.executescript("pragma application_id = %d; pragma user_version = 1" % catalogue.APPLICATION_ID)
        for view in ("run", "rank_step", "finding"):  # of that time, whatever they were
            db.execute(f"create view {view} as select 1 as one")
        db.execute("create view rank_info as select 0 as rank, 'old' as host")
        db.execute("insert into raw_host values (1, 'old', 'b', 1, 0, 5)")
        db.execute("insert into raw_clock values (1, 10, 5, 77000, 90, 'good')")
        db.commit()
        db.close()
        r = call("clocks", self.db)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("77.0 us", r.stdout)

    def test_wrong_use(self):
        self.assertEqual(call("clocks").returncode, 2)
        self.assertEqual(call("clocks", self.db).returncode, 3)
        self.assertIn("--history", call("clocks", "--help").stdout)


class Doctor(unittest.TestCase):
    def test_json_has_a_level_for_each_check_and_a_hint_for_each_failure(self):
        r = call("doctor", "--json", "--collector", "ipc:///nonexistent/socket")
        v = json.loads(r.stdout)
        self.assertEqual(r.returncode, 1)
        self.assertFalse(v["ok"])
        names = [c["check"] for c in v["checks"]]
        for name in ("clock", "shared memory", "liveness", "python", "extension", "pidfd", "disk", "collector", "reach"):
            self.assertIn(name, names)
        for c in v["checks"]:
            self.assertIn(c["level"], ("ok", "warn", "fail"))
            self.assertTrue(c["seen"])
            if c["level"] != "ok":
                self.assertTrue(c["todo"], c)
        self.assertEqual([c for c in v["checks"] if c["check"] == "reach"][0]["level"], "fail")

    def test_a_whole_build_has_no_failure(self):
        r = call("doctor", "--json")
        self.assertEqual([c for c in json.loads(r.stdout)["checks"] if c["level"] == "fail"], [])
        self.assertEqual(r.returncode, 0)

    def test_a_folder_that_is_not_there_fails_with_what_to_do(self):
        r = call("doctor", env={"SYNCLINE_DIR": "/nonexistent"})
        self.assertEqual(r.returncode, 1)
        self.assertIn("SYNCLINE_DIR", r.stdout)


class Serving(Folder):
    """`serve` on a finished run, and `status` against it."""

    def start(self, *options, said=None):
        p = subprocess.Popen([SYNCLINE, "serve", self.db, "--http", "127.0.0.1:0", *options], env=environment(),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait, 30)
        self.addCleanup(p.terminate)
        for line in p.stdout:
            if said is not None:
                said.append(line)
            at = line.find("http://")
            if at >= 0:
                return line[at:].split()[0].rstrip('",}')
        self.fail("serve said no address")

    def test_status_shows_the_run_and_its_findings(self):
        self.catalogue({})
        url = self.start()
        r = call("status", "--url", url)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("made-up", r.stdout)
        self.assertIn("Rank 2 is slow in forward.", r.stdout)
        self.assertIn("4 of 4", r.stdout)
        boot = json.loads(call("status", "--json", env={"SYNCLINE_URL": url}).stdout)
        self.assertEqual(boot["live"]["state"], "snapshot")

    def test_a_file_that_is_being_written_is_served_as_it_stands_and_that_is_said(self):
        db = catalogue.create(self.db, wal=True)
        self.addCleanup(db.close)
        db.execute("pragma wal_checkpoint(truncate)")
        db.execute("pragma wal_autocheckpoint = 0")
        catalogue.put_verdict(db)
        said = []
        url = self.start(said=said)
        self.assertIn("is being written", "".join(said))
        self.assertIn("Rank 2 is slow in forward.", call("status", "--url", url).stdout)

    def answering(self, *answers):
        """A collector that gives these (status, headers, object), the last one for ever."""
        left = list(answers)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, headers, told = left.pop(0) if len(left) > 1 else left[0]
                body = json.dumps(told).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return "http://127.0.0.1:%d/" % server.server_address[1]

    NOT_YET = {"status": 503, "detail": "Reading the catalogue.", "hint": "Ask again in a second."}

    def test_status_waits_for_a_collector_that_still_reads(self):
        url = self.answering((503, {"Retry-After": "1"}, self.NOT_YET), (503, {"Retry-After": "1"}, self.NOT_YET),
                             (200, {}, {"run": {"run_id": "late"}}))
        r = call("status", "--url", url)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertIn("late", r.stdout)

    def test_status_says_why_a_collector_is_not_ready(self):
        r = call("status", "--url", self.answering((503, {}, self.NOT_YET)))
        self.assertEqual(r.returncode, 3)
        self.assertIn("is not ready: Reading the catalogue. Ask again in a second.", r.stderr)

    def test_status_without_a_collector(self):
        self.assertEqual(call("status").returncode, 2)
        r = call("status", "--url", "http://127.0.0.1:1/")
        self.assertEqual(r.returncode, 3)
        self.assertIn("Is it running? Try: syncline doctor", r.stderr)

    def test_status_does_not_take_anything_for_a_collector(self):
        r = call("status", "--url", "file:///etc/passwd")
        self.assertEqual(r.returncode, 3)


if __name__ == "__main__":
    unittest.main()
