"""The agent between real probes and a collector that only notes what it was given.

The writers know how many events they wrote; the collector's notes say what was committed. In between
the collector dies, forgets, delays and refuses, and agents and ranks are killed.
SYNCLINE_BUILD names the build folder.
"""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("SYNCLINE_BUILD", os.path.join(ROOT, "b")))
AGENT = os.path.join(BUILD, "syncline-agent")
COLLECTOR = os.path.join(BUILD, "tests", "system", "fake_collector")
WRITER = os.path.join(BUILD, "tests", "system", "probe_writer")
DIED, LEFT = "3", "2"


class Notes:
    """What the collector committed, by kind of line."""

    def __init__(self, path):
        self.lines = []
        if os.path.exists(path):
            with open(path, errors="replace") as f:
                self.lines = [line.rstrip("\n").split(" ") for line in f if line.endswith("\n")]

    def of(self, kind):
        return [line[1:] for line in self.lines if line[0] == kind]

    def chunks(self):
        """{(unique, ring): [(first, n, a_first, a_last, contiguous)]} of committed batches."""
        committed = {(b[0], b[1]) for b in self.of("batch")}
        rings = {}
        for c in self.of("chunk"):
            if (c[0], c[1]) in committed:
                rings.setdefault((c[2], c[3]), []).append(tuple(map(int, c[4:9])))
        return rings

    def last_state(self, unique):
        """Of the newest agent's batch with the largest number: two in flight may overtake each other."""
        told = [p for p in self.of("proc") if p[2] == unique]
        return max((p for p in told if p[0] == told[-1][0]), key=lambda p: int(p[1]))


class Case(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.dir = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.out = os.path.join(self.tmp.name, "notes")
        self.url = f"ipc://{self.tmp.name}/c"
        self.spool = os.path.join(self.tmp.name, "spool")
        self.running = []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SYNCLINE_")}
        self.env.update(SYNCLINE_DIR=self.dir.name, SYNCLINE_RUN="run-1")

    def tearDown(self):
        for p in self.running:
            if p.poll() is None:
                p.kill()
            p.communicate()
        self.tmp.cleanup()
        self.dir.cleanup()

    def start(self, *command, **more):
        p = subprocess.Popen(command, env={**self.env, **more}, text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.running.append(p)
        return p

    def collector(self, *options):
        p = self.start(COLLECTOR, "--listen", self.url, "--out", self.out, *map(str, options))
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def agent(self, *options):
        return self.start(AGENT, "--collector", self.url, "--spool", self.spool, "--linger", "0.3",
                          *map(str, options))

    def writer(self, rank=0, threads=2, events=5000, rate=5000, end="exit"):
        return self.start(WRITER, str(threads), str(events), str(rate), end, RANK=str(rank))

    def finish(self, p, status=0, timeout=60):
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            self.fail(f"{p.args[0]} did not end within {timeout} s, and said: {p.communicate()}")
        self.assertEqual(p.returncode, status, out + err)
        return out, err

    def written(self, *writers, status=0):
        for w in writers:
            w.stdin.close()  # those with events=0 write until then
            w.stdin = None
        return [json.loads(self.finish(w, status)[0]) for w in writers]

    def until_batches(self, n):
        """Until the collector has n batches more than now."""
        before = len(Notes(self.out).of("batch"))
        self.until(lambda: len(Notes(self.out).of("batch")) >= before + n)

    def until(self, true, timeout=30):
        end = time.monotonic() + timeout
        while not true():
            self.assertLess(time.monotonic(), end, "it did not happen in time")
            time.sleep(0.02)

    def assert_all_once(self, written, n_rings=None):
        """Every event of the writers, in one unbroken row a ring, none twice."""
        notes = Notes(self.out)
        self.assertEqual(notes.of("unreadable"), [])
        self.assertEqual(notes.of("unknown"), [])
        batches = [(b[0], b[1]) for b in notes.of("batch")]
        self.assertEqual(len(batches), len(set(batches)))
        total = 0
        rings = notes.chunks()
        for ring, chunks in rings.items():
            expected = 0
            for first, n, a_first, a_last, contiguous in sorted(chunks):
                self.assertEqual(first, expected, (ring, sorted(chunks)))
                expected = first + n
                total += n
        self.assertEqual(total, sum(w["written"] for w in written))
        if n_rings:
            self.assertEqual(len(rings), n_rings)
        return notes

    def assert_clean(self):
        """Nothing is left behind."""
        self.assertEqual(os.listdir(self.dir.name), [])
        self.assertEqual(os.listdir(self.spool), [])


class Healthy(Case):
    def test_every_event_of_four_ranks_arrives_once_and_the_agent_goes(self):
        self.collector()
        agent = self.agent()
        writers = [self.writer(rank, threads=2, events=5000) for rank in range(4)]
        written = self.written(*writers)
        self.finish(agent)
        notes = self.assert_all_once(written, n_rings=8)
        self.assert_clean()
        self.assertEqual(sum(w["dropped"] for w in written), 0)
        for first in (c for chunks in notes.chunks().values() for c in chunks):
            self.assertEqual(first[4], 1)
            self.assertEqual(first[0], first[2])
        for unique in {u for u, _ in notes.chunks()}:
            self.assertEqual(notes.last_state(unique)[4], LEFT)
        self.assertEqual(sorted({p[3] for p in notes.of("proc")} - {"-1"}), ["0", "1", "2", "3"])
        self.assertEqual(len(notes.of("text")), sum(w["texts"] for w in written))
        self.assertIn(["writer.mark"], [n[4:] for n in notes.of("name")])
        gauges = {g[0] for g in notes.of("gauge")}
        self.assertLessEqual({"host.load1", "host.memory_available_bytes", "rss_bytes"}, gauges)
        bytes_an_event = sum(int(c[11]) for c in notes.of("chunk")) / sum(w["written"] for w in written)
        self.assertLess(bytes_an_event, 16)

    def test_heartbeats_carry_whole_exchanges(self):
        self.collector()
        agent = self.agent("--keep")
        writer = self.writer(end="hang")
        self.until(lambda: len(Notes(self.out).of("beat")) >= 6)
        beats = [list(map(int, b)) for b in Notes(self.out).of("beat")]
        for t0, t1, t2, t3, *_ in beats[2:]:  # one host, one clock: the order is certain
            self.assertTrue(0 < t0 < t1 <= t2 < t3)
        self.assertLess(beats[-1][7], 32 << 20)
        writer.kill()
        agent.terminate()
        self.finish(agent)

    def test_a_hang_is_told_by_where_it_hangs(self):
        self.collector()
        self.agent()
        self.writer(rank=2, events=100, end="hang")
        self.until(lambda: ["2", "7", "0", "world", "42"] in Notes(self.out).of("inflight"))

    def test_the_level_that_the_collector_asks_for_is_set(self):
        self.collector("--level", 3)
        self.agent()
        self.assertEqual(self.written(self.writer(events=5000))[0]["level"], 3)

    def test_without_a_run_id_the_first_process_names_it(self):
        self.collector()
        del self.env["SYNCLINE_RUN"]
        agent = self.agent()
        self.env["SYNCLINE_RUN"] = "named-by-rank"
        written = self.written(self.writer())
        self.finish(agent)
        notes = self.assert_all_once(written)
        self.assertEqual(notes.of("hello")[0][0], "named-by-rank")

    def test_a_process_of_another_run_is_left_alone(self):
        self.collector()
        agent = self.agent("--keep")
        self.env["SYNCLINE_RUN"] = "run-2"
        other = self.writer(end="hang", events=10)
        self.env["SYNCLINE_RUN"] = "run-1"
        written = self.written(self.writer())
        self.until(lambda: len(os.listdir(self.dir.name)) == 1)
        agent.terminate()
        _, err = self.finish(agent)
        self.assertIn("--run run-2", err)
        self.assert_all_once(written)
        other.kill()

    def test_writers_at_full_speed_lose_only_what_they_count(self):
        self.collector()
        agent = self.agent()
        written = self.written(*[self.writer(r, threads=1, events=200000, rate=0) for r in range(2)])
        self.finish(agent)
        notes = self.assert_all_once(written)
        told = sum(int(notes.last_state(u)[7]) for u in {u for u, _ in notes.chunks()})
        self.assertEqual(told, sum(w["dropped"] for w in written))


class Deaths(Case):
    def test_the_last_events_of_a_killed_rank_arrive(self):
        self.collector()
        agent = self.agent()
        writer = self.writer(rank=1, end="kill")
        written = self.written(writer, status=-signal.SIGKILL)
        self.finish(agent)
        notes = self.assert_all_once(written)
        self.assert_clean()
        state = notes.last_state(notes.of("proc")[0][2])
        self.assertEqual(state[4], DIED)
        self.assertIn(state[6], ("9", "-1"))  # older kernels do not tell

    def test_a_rank_that_leaves_is_no_death(self):
        self.collector()
        agent = self.agent()
        written = self.written(self.writer(end="status7"), status=7)
        self.finish(agent)
        state = self.assert_all_once(written).last_state(Notes(self.out).of("proc")[0][2])
        self.assertEqual(state[4], LEFT)
        self.assertIn(state[5], ("7", "-1"))

    def test_a_rank_that_was_gone_before_the_agent_came_is_read(self):
        written = self.written(self.writer(end="kill"), status=-signal.SIGKILL)
        self.collector()
        self.finish(self.agent())
        self.assert_all_once(written)
        self.assert_clean()

    def test_a_file_cut_short_costs_only_its_own_process(self):
        self.collector()
        agent = self.agent()
        victim = self.writer(rank=0, events=10, end="hang")
        self.until(lambda: Notes(self.out).of("chunk"))
        path = [os.path.join(self.dir.name, f) for f in os.listdir(self.dir.name)][0]
        victim.send_signal(signal.SIGSTOP)  # its own SIGBUS is not what is tested
        os.truncate(path, 4096)
        survivor = self.writer(rank=1, events=0)
        self.until(lambda: any(p[3] == "1" for p in Notes(self.out).of("proc")))
        self.written(survivor)
        victim.kill()
        _, err = self.finish(agent)
        self.assertIn("was cut short", err)

    def test_an_agent_killed_while_shipping_loses_and_repeats_nothing(self):
        self.collector("--delay-ms", 30)
        writers = [self.writer(rank, events=0) for rank in range(2)]
        for _ in range(3):
            agent = self.agent()
            self.until_batches(8)
            agent.kill()
            agent.wait()
        agent = self.agent()
        written = self.written(*writers)
        self.finish(agent)
        notes = self.assert_all_once(written)
        self.assertGreaterEqual(len({b[0] for b in notes.of("batch")}), 4)
        self.assert_clean()

    def test_an_agent_killed_while_the_collector_is_away_leaves_its_spool(self):
        agent = self.agent()
        writer = self.writer(events=0)
        self.until(lambda: os.path.isdir(self.spool) and
                   sum(os.path.getsize(os.path.join(self.spool, f)) for f in os.listdir(self.spool)) > 50000)
        agent.kill()
        agent.wait()
        written = self.written(writer)
        self.collector()
        _, err = self.finish(self.agent())
        self.assertIn("that an earlier agent kept", err)
        self.assert_all_once(written)
        self.assert_clean()


class Collector(Case):
    def test_killed_and_restarted_it_has_everything_once(self):
        collector = self.collector()
        agent = self.agent()
        writers = [self.writer(rank, events=0) for rank in range(2)]
        for _ in range(2):
            self.until_batches(10)
            collector.kill()
            collector.wait()
            time.sleep(0.3)
            collector = self.collector()
        self.until_batches(3)
        written = self.written(*writers)
        _, err = self.finish(agent)
        notes = self.assert_all_once(written)
        self.assertGreaterEqual(len(notes.of("hello")), 3)
        self.assertIn("is back", err)
        self.assert_clean()

    def test_dying_between_commit_and_answer_repeats_nothing(self):
        collector = self.collector("--die-after", 5)
        agent = self.agent()
        writer = self.writer(events=0)
        collector.wait(timeout=30)
        self.collector()
        written = self.written(writer)
        self.finish(agent)
        self.assertTrue(self.assert_all_once(written).of("again"))

    def test_lost_answers_are_asked_for_again(self):
        self.collector("--forget", 3)
        agent = self.agent()
        writer = self.writer(events=0)
        self.until(lambda: len(Notes(self.out).of("again")) >= 3)
        written = self.written(writer)
        self.finish(agent)
        self.assert_all_once(written)

    def test_lost_batches_are_sent_again(self):
        self.collector("--mute", 3)
        agent = self.agent()
        written = self.written(self.writer())
        self.finish(agent)
        self.assert_all_once(written)

    def test_a_slow_one_gets_everything(self):
        self.collector("--delay-ms", 300, "--credit", 2)
        agent = self.agent()
        written = self.written(*[self.writer(r, events=10000) for r in range(2)])
        self.finish(agent)
        self.assert_all_once(written)

    def test_busy_is_not_no(self):
        self.collector("--busy", 3)
        agent = self.agent()
        writer = self.writer(events=0)
        self.until_batches(3)
        written = self.written(writer)
        _, err = self.finish(agent)
        self.assertIn("the disk is full", err)
        self.assert_all_once(written)

    def test_a_batch_that_it_cannot_read_is_given_up_and_counted(self):
        self.collector("--malformed", 5)
        agent = self.agent()
        writer = self.writer(events=0)
        self.until_batches(10)
        written = self.written(writer)[0]["written"]
        _, err = self.finish(agent)
        self.assertIn("given up and counted", err)
        notes = Notes(self.out)
        got = sum(n for chunks in notes.chunks().values() for _, n, *_ in chunks)
        self.assertEqual(got + int(notes.of("batch")[-1][2]), written)

    def test_answers_that_are_none_do_not_stop_it(self):
        collector = self.collector("--garbage", 1)
        agent = self.agent()
        writer = self.writer(events=0)
        self.until(lambda: Notes(self.out).of("hello"))
        self.until(lambda: "understands" in agent.stderr.readline())
        collector.kill()
        collector.wait()
        self.collector()
        written = self.written(writer)
        self.finish(agent)
        self.assert_all_once(written)

    def test_away_for_too_long_the_oldest_events_go_and_are_counted(self):
        agent = self.agent("--spool-bytes", "1M")
        writers = [self.writer(r, threads=1, events=0, rate=200000) for r in range(2)]
        self.until(lambda: "were given up" in agent.stderr.readline())
        written = self.written(*writers)
        self.collector()
        self.finish(agent)
        notes = Notes(self.out)
        got = sum(n for chunks in notes.chunks().values() for _, n, *_ in chunks)
        given_up = max(int(b[2]) for b in notes.of("batch"))
        self.assertGreater(given_up, 0)
        self.assertEqual(got + given_up, sum(w["written"] for w in written))

    def test_a_full_disk_leaves_memory_to_work_with(self):
        agent = self.start("/bin/sh", "-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "sh", AGENT,
                           "--collector", self.url, "--spool", self.spool, "--linger", "0.3")
        written = self.written(self.writer(threads=1, events=30000, rate=50000))
        self.collector()
        _, err = self.finish(agent)
        self.assertIn("cannot be written", err)
        self.assert_all_once(written)


class Endings(Case):
    def test_asked_to_end_it_ships_first(self):
        self.collector()
        agent = self.agent()
        writer = self.writer(events=3000, end="hang")
        written = json.loads(writer.stdout.readline())
        begin = time.monotonic()
        agent.terminate()
        self.finish(agent)
        self.assertLess(time.monotonic() - begin, 5)
        notes = Notes(self.out)
        got = sum(n for chunks in notes.chunks().values() for _, n, *_ in chunks)
        self.assertEqual(got, written["written"] + 2)  # and the two events of the hang

    def test_refusals_name_cause_and_next_step(self):
        for code, words in ((1, "same release"), (2, "--token-file"), (3, "--run"), (4, "SYNCLINE_RUN")):
            with self.subTest(code=code):
                collector = self.collector("--refuse-hello", code)
                writer = self.writer(events=500, end="hang")
                writer.stdout.readline()
                out, err = self.finish(self.agent(), 3)
                self.assertIn("refuses this agent: as the test asked for", err)
                self.assertIn(words, err)
                self.assertIn("are kept in " + self.spool, err)
                collector.kill()
                collector.wait()
                writer.kill()

    def test_wrong_usage_is_said_with_status_2(self):
        def usage(*options):
            p = subprocess.run([AGENT, *options], env=self.env, text=True, capture_output=True, timeout=20)
            return p.returncode, p.stderr
        self.assertEqual(usage()[0], 2)
        self.assertIn("--collector tcp://HOST:7788", usage()[1])
        self.assertEqual(usage("--nonsense")[0], 2)
        self.assertEqual(usage("-c", "tcp://h:1", "extra")[0], 2)
        self.assertEqual(usage("-c", "tcp://h:1", "--level", "9")[0], 2)
        self.assertEqual(usage("-c", "tcp://h:1", "--spool-bytes", "12")[0], 2)
        code, err = usage("-c", "http://h:1")
        self.assertEqual(code, 2)
        self.assertIn("neither tcp://HOST:PORT nor ipc:///PATH", err)
        code, err = usage("-c", "tcp://h:1", "--token-file", "/nowhere")
        self.assertEqual(code, 3)
        self.assertIn("cannot read the token file /nowhere", err)

    def test_waiting_for_a_collector_ends_when_asked(self):
        _, err = self.finish(self.agent("--wait", "0.5"), 3)
        self.assertIn("no collector answered at " + self.url, err)

    def test_the_token_is_what_the_file_says(self):
        token = os.path.join(self.tmp.name, "token")
        with open(token, "w") as f:
            f.write("s3cret\n")
        self.collector()
        agent = self.agent("--token-file", token)
        self.written(self.writer(events=100))
        self.finish(agent)
        self.assertEqual(Notes(self.out).of("hello")[0][3], "s3cret")

    def test_quiet_is_quiet(self):
        self.collector()
        agent = self.agent("--quiet")
        self.written(self.writer(events=100))
        self.assertEqual(self.finish(agent), ("", ""))


if __name__ == "__main__":
    unittest.main()
