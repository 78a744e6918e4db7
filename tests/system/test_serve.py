#!/usr/bin/env python3
"""The HTTP side against docs/api.md: test_serve.py HOST_PROGRAM [unittest arguments].

A catalogue with known content is made from sql/; the host program serves it, and
plain sockets and http.client ask.
"""
import contextlib
import gzip
import http.client
import json
import math
import os
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOST = None
N_STEPS, N_RANKS, SLOW_RANK = 530, 4, 2
LAST = N_STEPS - 1
T0 = 1_700_000_000_000_000_000
CLOCK_ERRORS = ((T0, 900), (T0 + 1, 400))
MS = 1_000_000
CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
       "img-src 'self' blob: data:; worker-src 'self'; base-uri 'none'; form-action 'none'; "
       "frame-ancestors 'self'")


def self_ns(step, rank):
    return (30 if rank == SLOW_RANK and step >= 40 else 10) * MS + step * 1000 + rank


def make_catalogue(path):
    db = sqlite3.connect(path)
    folder = os.path.join(ROOT, 'sql', 'migrations')
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding='utf-8') as f:
            db.executescript(f.read())
    db.execute('PRAGMA user_version = %d' % len(os.listdir(folder)))
    with open(os.path.join(ROOT, 'sql', 'views.sql'), encoding='utf-8') as f:
        db.executescript(f.read())
    db.execute('PRAGMA journal_mode = WAL')
    db.execute(f'PRAGMA user_version = {len(os.listdir(folder))}')
    put(db, 'raw_run', run_id='r1', name='demo "run"', world_size=4, started_ns=T0, ended_ns=None,
        fleet_minus_raw_ns=0, boot_id='b')
    put(db, 'raw_host', host_id=1, name='alpha', boot_id='b', time_ns_inode=1, same_clock=1)
    put(db, 'raw_host', host_id=2, name='beta\n"x"\\', boot_id='c', time_ns_inode=1, same_clock=0)
    put(db, 'raw_agent', agent=1, agent_id=b'a', host_id=1, version='0.1.0', n_given_up=7)
    for at, error in CLOCK_ERRORS:
        put(db, 'raw_clock', host_id=1, at_ns=at, offset_ns=-5, error_ns=error, rtt_ns=800,
            quality='good', soft_ns=7, skew_ppb=-12.5, status='anchored')
    for rank in range(N_RANKS):
        put(db, 'raw_process', process_id=rank + 1, host_id=1 + rank % 2, agent=1, unique_id=rank,
            pid=100 + rank, rank=rank, local_rank=rank // 2, world_size=4, restart_count=0,
            host_started_ns=1, state='left', state_at_ns=T0 + 9, n_dropped=3 if rank == 1 else 0)
    # Rank 3 was restarted: the newer process counts.
    put(db, 'raw_process', process_id=9, host_id=2, agent=1, unique_id=99, pid=999, rank=3,
        local_rank=1, world_size=4, restart_count=1, host_started_ns=1, state='alive',
        state_at_ns=None)
    put(db, 'raw_group', group_id=1, name='world', ranks='[0,1,2,3]', ranks_known=1)
    for step in range(N_STEPS):
        begin = T0 + step * 50 * MS
        slowest = max(self_ns(step, r) for r in range(N_RANKS))
        put(db, 'raw_step', step=step, begin_ns=begin, dur_ns=slowest + MS, dur_err_ns=100,
            n_ranks=4, slowest_rank=SLOW_RANK if step >= 40 else None, complete=int(step != 7))
        for rank in range(N_RANKS):
            if step == 7 and rank == 3:
                continue
            mine = self_ns(step, rank)
            excess = mine / self_ns(step, 0) - 1 if step != 5 else None
            put(db, 'raw_rank_step', step=step, rank=rank, begin_ns=begin + rank, begin_err_ns=50,
                dur_ns=slowest, self_ns=mine, exposed_comm_ns=slowest - mine, wait_ns=0,
                wait_err_ns=10, input_wait_ns=MS, fwd_ns=2 * MS, bwd_ns=3 * MS, opt_ns=MS,
                eval_ns=None, excess_ratio=excess, n_peers=4, coverage=1.0)
            put(db, 'raw_bucket', step=step, rank=rank, ddp=0, micro=0, bucket=0, bytes=4096,
                seq=step, ready_ns=begin + 1, submitted_ns=begin + 2, started_ns=None,
                reduced_ns=begin + 4, applied_ns=begin + 5, err_ns=50)
        put(db, 'raw_collective', group_id=1, seq=step, op=1, dtype=1, bytes=4096, step=step,
            first_arrival_ns=begin, last_arrival_ns=begin + 20 * MS, end_ns=begin + 21 * MS,
            skew_ns=20 * MS, skew_err_ns=100, last_rank=SLOW_RANK, decided=1, mismatch=0,
            n_expected=4, n_seen=4, arrivals=json.dumps(
                [[0, 0, 21 * MS, 50], [1, 5, 21 * MS, 50], [2, 20 * MS, 21 * MS, 50],
                 [3, 7, None, 50]]))
    for key, cls, severity, cost in (('a', 'slow.fixed_rank', 'slow', 0.5),
                                     ('b', 'slow.input', 'slow', 1.5),
                                     ('c', 'clock.poor', 'notice', None),
                                     ('d', 'hang.rank', 'stuck', 0.0)):
        put(db, 'raw_verdict', key=key, **{'class': cls}, severity=severity, confidence='certain',
            error_kind='hard', culprit='{"ranks":[2]}', sentence='Rank 2 is slow.',
            evidence='[{"view":"rank_step","step":40,"rank":2}]', rules_out='[]', coverage='{}',
            first_step=40, last_step=299, onset_ns=T0 + 40, detected_ns=T0 + 140, cost_ratio=cost,
            margin_ns=20 * MS, error_ns=100)
    for i in range(5):
        put(db, 'raw_log', at_ns=T0 + i, err_ns=10, process_id=1, rank=0, kind='log', level=30,
            logger='train', text='line %d' % i)
    db.execute("INSERT INTO raw_log (at_ns, err_ns, process_id, rank, kind, level, logger, text) "
               "VALUES (?, 1, 1, 1, 'log', 40, 'train', CAST(x'c3285a' AS TEXT))", (T0 + 9,))
    db.commit()
    return db


NEEDED = {}


def needed(db, table):
    """Columns that must have a value; those of no interest here get 0."""
    if table not in NEEDED:
        NEEDED[table] = [name for _, name, _, not_null, default, key in
                         db.execute('PRAGMA table_info(%s)' % table)
                         if not_null and default is None and not key]
    return NEEDED[table]


def put(db, table, **values):
    for name in needed(db, table):
        values.setdefault(name, 0)
    db.execute('INSERT INTO %s (%s) VALUES (%s)' % (
        table, ', '.join('"%s"' % k for k in values), ', '.join('?' * len(values))),
        list(values.values()))


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.raw = response.read()
        self.body = self.raw
        if self.headers.get('Content-Encoding') == 'gzip':
            self.body = gzip.decompress(self.raw)

    def json(self):
        return json.loads(self.body)


class Host:
    """The running program."""

    def __init__(self, db, *options, http_at='127.0.0.1:0'):
        self.process = subprocess.Popen([HOST, db, http_at, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        self.port = int(self.url.rsplit(':', 1)[1].strip('/')) if self.url else None

    def tell(self, *lines):
        self.process.stdin.write(''.join(line + '\n' for line in lines))
        self.process.stdin.flush()
        for _ in lines:
            assert self.process.stdout.readline() == 'ok\n'

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        status = self.process.wait(10)
        self.process.stdout.close()
        return status

    def ask(self, path, method='GET', headers=None, body=None):
        conn = http.client.HTTPConnection('127.0.0.1', self.port, timeout=10)
        try:
            conn.request(method, path, body=body, headers=headers or {})
            return Answer(conn.getresponse())
        finally:
            conn.close()

    def raw(self, data):
        with socket.create_connection(('127.0.0.1', self.port), timeout=10) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            out = b''
            while True:
                try:
                    part = s.recv(65536)
                except ConnectionResetError:
                    return out
                if not part:
                    return out
                out += part

    def wait_ready(self):
        end = time.monotonic() + 10
        while self.ask('/readyz').status != 200:
            assert time.monotonic() < end, 'never ready'


class Events:
    """A stream of server-sent events."""

    def __init__(self, host, last_id=None, query='', receive_buffer=None):
        self.sock = socket.socket()
        self.sock.settimeout(10)
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.connect(('127.0.0.1', host.port))
        head = 'GET /api/v1/events%s HTTP/1.1\r\nHost: localhost\r\n' % query
        if last_id is not None:
            head += 'Last-Event-ID: %s\r\n' % last_id
        self.sock.sendall((head + '\r\n').encode())
        self.response = http.client.HTTPResponse(self.sock)

    def begin(self):
        self.response.begin()
        return self

    def next(self):
        """One event as (id, name, data); a comment is (None, ':', None)."""
        event = {}
        while True:
            line = self.response.readline().decode()
            if line == '':
                return None
            line = line.rstrip('\n')
            if line == '':
                if 'event' in event:
                    return int(event['id']), event['event'], json.loads(event['data'])
                if 'comment' in event:
                    return None, ':', None
                continue
            if line.startswith(':'):
                event['comment'] = True
                continue
            name, _, value = line.partition(': ')
            event[name] = value

    def close(self):
        self.response.close()
        self.sock.close()


class ServeTest(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='syncline-serve-')
        cls.db_path = os.path.join(cls.folder, 'run.db')
        cls.db = make_catalogue(cls.db_path)
        cls.host = Host(cls.db_path, 'gap_ms=20', 'heartbeat_ms=400', *cls.options)

    @classmethod
    def tearDownClass(cls):
        status = cls.host.close()
        cls.db.close()
        shutil.rmtree(cls.folder)
        assert status == 0, 'the host ended with %d' % status

    def streams(self):
        for line in self.ok('/metrics').body.decode().splitlines():
            if line.startswith('syncline_http_streams '):
                return int(line.split()[1])

    def ok(self, path, **more):
        a = self.host.ask(path, **more)
        self.assertEqual(a.status, 200, a.body)
        return a

    def problem(self, a, status):
        self.assertEqual(a.status, status, a.body)
        self.assertEqual(a.headers['Content-Type'], 'application/problem+json')
        p = a.json()
        self.assertEqual(p['status'], status)
        self.assertEqual(p['type'], 'about:blank')
        for key in ('title', 'detail', 'hint'):
            self.assertTrue(p[key])
        return p


class Paths(ServeTest):
    def test_boot_has_everything_the_first_picture_needs(self):
        b = self.ok('/api/v1/boot').json()
        self.assertEqual(b['run'], {'run_id': 'r1', 'name': 'demo "run"', 'world_size': 4,
                                    'started_ns': str(T0), 'ended_ns': None})
        self.assertEqual(b['live'], {
            'state': 'live', 'now_ns': '2000000000', 'last_event_ns': '1999000000', 'step': LAST,
            'step_ns': self_ns(LAST, 2) + MS, 'n_ranks': 4, 'n_agents': 1,
            'listen': 'tcp://127.0.0.1:7788'})
        self.assertEqual(b['coverage'], {'ranks_expected': 4, 'ranks_seen': 4, 'events': 1000,
                                         'events_lost': 0, 'drops': 0, 'collectives_hidden': False})
        self.assertEqual(b['clock'], {'error_ns': 250, 'hosts': 2, 'unaligned': 1, 'by_stream': 0})
        self.assertEqual(b['overhead'], {'agent_cpu_ratio': 0.004, 'known': True})
        self.assertEqual(b['axes'], {'first_step': 0, 'last_step': LAST, 'n_ranks': 4})
        self.assertEqual(b['heat']['metrics'],
                         ['self', 'wait', 'exposed', 'input', 'fwd', 'bwd', 'opt', 'step'])
        self.assertEqual(b['heat']['baselines'], ['peers', 'raw'])
        self.assertEqual(b['heat']['aggs'], ['max', 'mean', 'min'])
        self.assertLess(b['heat']['rev'], 2**53)
        self.assertLess(b['cursor'], 2**53)
        self.assertEqual(len(b['findings']), 4)
        self.assertTrue(b['version'])

    def test_run_is_a_part_of_boot(self):
        boot = self.ok('/api/v1/boot').json()
        self.assertEqual(self.ok('/api/v1/run').json(),
                         {k: boot[k] for k in ('run', 'live', 'coverage')})

    def test_the_newest_process_of_a_rank_is_listed(self):
        ranks = self.ok('/api/v1/ranks').json()['ranks']
        self.assertEqual([r['rank'] for r in ranks], [0, 1, 2, 3])
        self.assertEqual(ranks[3], {'rank': 3, 'host': 'beta\n"x"\\', 'local_rank': 1, 'pid': 999,
                                    'restart_count': 1, 'state': 'alive', 'state_at_ns': None})
        self.assertEqual(ranks[0]['state_at_ns'], str(T0 + 9))

    def test_findings_come_most_severe_then_most_costly_first(self):
        f = self.ok('/api/v1/findings').json()['findings']
        self.assertEqual([x['class'] for x in f],
                         ['hang.rank', 'slow.input', 'slow.fixed_rank', 'clock.poor'])
        self.assertEqual(f[2]['culprit'], {'ranks': [2]})
        self.assertEqual(f[2]['evidence'], [{'view': 'rank_step', 'step': 40, 'rank': 2}])
        self.assertEqual(f[2]['onset_ns'], str(T0 + 40))
        self.assertEqual(f[2]['detected_after_ns'], 100)
        self.assertIsNone(f[3]['cost_ratio'])

    def test_steps_of_a_range(self):
        steps = self.ok('/api/v1/steps?from=5&to=8').json()['steps']
        self.assertEqual([s['step'] for s in steps], [5, 6, 7, 8])
        self.assertEqual([s['complete'] for s in steps], [True, True, False, True])
        self.assertEqual(steps[0]['begin_ns'], str(T0 + 5 * 50 * MS))
        self.assertIsNone(steps[0]['slowest_rank'])
        self.assertEqual(len(self.ok('/api/v1/steps').json()['steps']), N_STEPS)

    def test_one_step(self):
        s = self.ok('/api/v1/step/50').json()
        begin = T0 + 50 * 50 * MS
        self.assertEqual(s['step']['slowest_rank'], SLOW_RANK)
        self.assertEqual([r['self_ns'] for r in s['ranks']], [self_ns(50, r) for r in range(4)])
        self.assertEqual(s['ranks'][3]['begin_ns'], str(begin + 3))
        self.assertIsNone(s['ranks'][0]['eval_ns'])
        c, = s['collectives']
        self.assertEqual((c['comm_id'], c['seq'], c['op'], c['dtype'], c['bytes'], c['decided'],
                          c['last_rank'], c['skew_ns'], c['skew_err_ns']),
                         ('world', 50, 'all_reduce', 'float32', 4096, True, 2, 20 * MS, 100))
        self.assertEqual(c['arrivals'][1], {
            'rank': 1, 'arrival_ns': str(begin + 5), 'arrival_err_ns': 50,
            'wait_ns': 20 * MS - 5, 'dur_ns': 21 * MS - 5})
        self.assertEqual(c['arrivals'][2]['wait_ns'], 0)
        self.assertIsNone(c['arrivals'][3]['dur_ns'])
        self.assertEqual(len(s['buckets']), 4)
        self.assertEqual(s['buckets'][0]['ready_ns'], str(begin + 1))
        self.assertIsNone(s['buckets'][0]['started_ns'])
        self.assertEqual(s['left_out'], {'collectives': 0, 'arrivals': 0, 'buckets': 0})

    def test_a_step_that_is_not_there_is_404(self):
        self.problem(self.host.ask('/api/v1/step/4000000'), 404)

    def test_cell_has_the_exact_values(self):
        c = self.ok('/api/v1/cell?step=50&rank=2').json()
        self.assertEqual((c['self_ns'], c['begin_ns'], c['peers']),
                         (self_ns(50, 2), str(T0 + 50 * 50 * MS + 2), 4))
        columns = [r[1] for r in self.db.execute('PRAGMA table_info(rank_step)')]
        self.assertEqual(sorted(c), sorted(columns))
        self.assertIsNone(self.ok('/api/v1/cell?step=5&rank=0').json()['excess_ratio'])
        self.problem(self.host.ask('/api/v1/cell?step=7&rank=3'), 404)
        self.problem(self.host.ask('/api/v1/cell?step=7'), 400)

    def test_clocks_give_the_newest_estimate_and_null_for_none(self):
        hosts = self.ok('/api/v1/clocks').json()['hosts']
        self.assertEqual(hosts[0], {'host': 'alpha', 'offset_ns': -5, 'error_ns': 400, 'rtt_ns': 800,
                                    'quality': 'good', 'soft_ns': 7, 'skew_ppb': -12.5, 'status': 'anchored',
                                    'same_clock': True, 'way': None, 'stamps': None, 'why': None})
        self.assertEqual((hosts[1]['same_clock'], hosts[1]['error_ns']), (False, None))
        history = self.ok('/api/v1/clocks/history').json()['history']
        self.assertEqual({h['host'] for h in history}, {'alpha'})
        self.assertEqual(max(h['worst_error_ns'] for h in history), max(e for _, e in CLOCK_ERRORS))
        self.assertEqual(sum(h['n_estimates'] for h in history), len(CLOCK_ERRORS))
        self.assertEqual(self.ok('/api/v1/clocks/steps').json(), {'steps': []})

    def test_drops_are_named_by_rank_and_place(self):
        self.assertEqual(self.ok('/api/v1/drops').json(), {'total': 10, 'by_rank': [
            {'rank': None, 'place': 'spool', 'n': 7}, {'rank': 1, 'place': 'ring', 'n': 3}]})

    def test_logs_newest_last_and_never_invalid_text(self):
        logs = self.ok('/api/v1/logs?limit=2').json()['logs']
        self.assertEqual([x['text'] for x in logs], ['line 4', '\ufffd(Z'])
        self.assertEqual(logs[0]['at_ns'], str(T0 + 4))

    def test_metrics_count_what_the_catalogue_has(self):
        a = self.ok('/metrics')
        self.assertTrue(a.headers['Content-Type'].startswith('text/plain'))
        lines = a.body.decode().splitlines()
        values = {}
        for line in lines:
            if not line.startswith('#'):
                name, _, value = line.rpartition(' ')
                self.assertNotIn(name, values)
                values[name] = float(value)
        self.assertEqual(values['syncline_step_seconds_count'], N_STEPS)
        self.assertEqual(values['syncline_step_seconds_bucket{le="0.025"}'], 40)
        self.assertEqual(values['syncline_step_seconds_bucket{le="+Inf"}'], N_STEPS)
        self.assertEqual(values['syncline_findings{kind="slow.input",severity="slow"}'], 1)
        self.assertEqual(values['syncline_drops_total{where="spool"}'], 7)
        self.assertAlmostEqual(values['syncline_clock_error_seconds{quantile="1"}'], 400e-9)
        self.assertAlmostEqual(values['syncline_collective_skew_seconds{comm="world",op="all_reduce"}'],
                               0.02)
        self.assertGreater(values['syncline_rank_excess_ratio{quantile="1"}'], 1.9)
        self.assertGreater(values['syncline_worst_rank_excess_ratio{host="alpha"}'], 1.9)
        self.assertIn('syncline_worst_rank_excess_ratio{host="beta\\n\\"x\\"\\\\"}', values)
        self.assertEqual(values['syncline_agents{state="connected"}'], 1)
        for name in (n.split('{')[0] for n in values):
            base = name
            for end in ('_bucket', '_sum', '_count'):
                if name == 'syncline_step_seconds' + end:
                    base = 'syncline_step_seconds'
            self.assertTrue(any(line.startswith('# TYPE %s ' % base) for line in lines), name)

    def test_health(self):
        self.assertEqual(self.ok('/healthz').body, b'ok\n')
        self.assertEqual(self.ok('/readyz').body, b'ok\n')

    def test_state_follows_the_events(self):
        try:
            for line, state in (('event 2000000000 -9223372036854775808', 'waiting'),
                                ('event 20000000000 1999000000', 'stale')):
                self.host.tell(line)
                self.assertEqual(self.ok('/api/v1/run').json()['live']['state'], state)
        finally:
            self.host.tell('event 2000000000 1999000000')

    def test_the_page_or_a_page_that_says_how_to_build_it(self):
        a = self.ok('/')
        self.assertEqual(a.headers['Content-Type'], 'text/html; charset=utf-8')
        self.assertEqual(a.headers['Cache-Control'], 'no-cache')
        self.assertEqual(self.ok('/index.html').body, a.body)
        self.assertNotIn(b'src="/', a.body)
        self.assertNotIn(b'href="/', a.body)


class Http(ServeTest):
    def test_every_answer_has_the_headers(self):
        for path, method in (('/', 'GET'), ('/api/v1/boot', 'GET'), ('/no/such', 'GET'),
                             ('/api/v1/boot', 'DELETE'), ('/metrics', 'HEAD'),
                             ('/api/v1/heat/self/peers/max/0-0/0/0', 'GET'), ('/healthz', 'GET')):
            a = self.host.ask(path, method)
            self.assertEqual(a.headers['Content-Security-Policy'], CSP, path)
            self.assertEqual(a.headers['X-Content-Type-Options'], 'nosniff')
            self.assertEqual(a.headers['Referrer-Policy'], 'no-referrer')
            self.assertEqual(a.headers['Cross-Origin-Opener-Policy'], 'same-origin-allow-popups')
            self.assertNotIn('Access-Control-Allow-Origin', a.headers)

    def test_unknown_paths_are_404_with_a_hint(self):
        p = self.problem(self.host.ask('/api/v1/nothing%1b'), 404)
        self.assertIn('/api/v1/nothing', p['detail'])
        self.assertNotIn('\x1b', p['detail'])
        for path in ('/api/v1/', '/api/v1/heat', '/api/v1/heat/self/peers/max/0-0/0/0/0', '/..',
                     '/api/v2/boot', '//', '/index.html/'):
            self.problem(self.host.ask(path), 404)

    def test_values_out_of_range_are_400_and_named(self):
        for path, name in (('/api/v1/step/x', 'step'), ('/api/v1/step/-1', 'step'),
                           ('/api/v1/step/4294967295', 'step'), ('/api/v1/steps?from=9&to=8', 'to'),
                           ('/api/v1/heat/nope/peers/max/0-0/0/0', 'metric'),
                           ('/api/v1/heat/self/peers/max/25-0/0/0', 'zs-zr'),
                           ('/api/v1/heat/self/peers/max/0-0/0/256', 'y'),
                           ('/api/v1/heat/self/peers/max/24-0/1/0', 'x'),
                           ('/api/v1/heat/cols?from=0&to=9&rows=0', 'rows'),
                           ('/api/v1/heat/cols?from=0&to=2047&rows=4096', 'rows'),
                           ('/api/v1/heat/cols?from=0&to=2048&rows=1', 'to'),
                           ('/api/v1/cell?step=1&rank=65536', 'rank'),
                           ('/api/v1/logs?limit=1001', 'limit')):
            self.assertIn('`%s`' % name, self.problem(self.host.ask(path), 400)['detail'], path)
        self.problem(self.host.ask('/api/v1/boot%'), 400)
        self.problem(self.host.ask('/api/v1/steps?from=%zz'), 400)

    def test_head_has_the_length_and_no_body(self):
        full = self.ok('/api/v1/ranks')
        a = self.host.ask('/api/v1/ranks', 'HEAD')
        self.assertEqual((a.status, a.raw), (200, b''))
        self.assertEqual(a.headers['Content-Length'], str(len(full.raw)))

    def test_other_methods_are_405_with_allow(self):
        for method in ('PUT', 'DELETE', 'OPTIONS', 'PATCH', 'POST'):
            a = self.host.ask('/api/v1/boot', method)
            self.problem(a, 405)
            self.assertEqual(a.headers['Allow'], 'GET, HEAD')
        a = self.host.ask('/api/v1/login')
        self.problem(a, 405)
        self.assertEqual(a.headers['Allow'], 'POST')

    def test_only_our_own_names_are_answered(self):
        port = self.host.port
        for name in ('localhost:%d' % port, '127.0.0.1', '127.9.8.7:1', '[::1]:%d' % port, 'LOCALHOST'):
            self.ok('/api/v1/run', headers={'Host': name})
        for name in ('evil.example', 'evil.example:%d' % port, 'localhost.evil.example', '10.0.0.1',
                     '[::1', '', '127.0.0.1.evil.example'):
            self.problem(self.host.ask('/api/v1/run', headers={'Host': name}), 421)
        self.ok('/healthz', headers={'Host': 'pod-7.internal'})
        self.assertIn(b' 200 ', self.host.raw(b'GET /healthz HTTP/1.0\r\n\r\n').split(b'\r\n')[0])

    def test_post_from_another_origin_is_refused(self):
        host = '127.0.0.1:%d' % self.host.port
        for origin in ('http://evil.example', 'null', 'http://127.0.0.1:1', 'file://' + host):
            a = self.host.ask('/api/v1/login', 'POST', {'Origin': origin, 'Host': host}, '{"token":"x"}')
            self.problem(a, 403)
        a = self.host.ask('/api/v1/login', 'POST', {'Origin': 'http://' + host, 'Host': host},
                          '{"token":"x"}')
        self.assertEqual(a.status, 204)

    def test_an_address_over_8_kb_is_414(self):
        self.problem(self.host.ask('/api/v1/boot?' + 'x' * 8190), 414)
        self.ok('/api/v1/run?' + 'x' * 8000)

    def test_a_body_over_64_kb_is_413(self):
        self.problem(self.host.ask('/api/v1/login', 'POST', body='x' * 65537), 413)
        self.problem(self.host.ask('/api/v1/login', 'POST', body='x' * 65536), 400)
        chunk = b'8000\r\n' + b'x' * 32768 + b'\r\n'
        out = self.host.raw(b'POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
                            b'Transfer-Encoding: chunked\r\n\r\n' + chunk * 3 + b'0\r\n\r\n')
        self.assertIn(b' 413 ', out.split(b'\r\n')[0])

    def test_a_body_that_never_ends_is_cut(self):
        s = socket.create_connection(('127.0.0.1', self.host.port), timeout=10)
        s.sendall(b'POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
        with self.assertRaises(OSError):
            for _ in range(1000):
                s.sendall(b'8000\r\n' + b'x' * 32768 + b'\r\n')
        s.close()

    def test_garbage_does_not_hurt(self):
        for data in (b'\x00' * 100 + b'\r\n\r\n', b'GET\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n',
                     b'GET /%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
                     b'GET http://x/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
                     b'A' * 100000, b'GET / HTTP/1.1\r\n' + b'x: y\r\n' * 10000 + b'\r\n'):
            with contextlib.suppress(OSError):
                self.host.raw(data)
        self.ok('/healthz')

    def test_json_is_packed_when_accepted(self):
        plain = self.ok('/api/v1/steps')
        packed = self.ok('/api/v1/steps', headers={'Accept-Encoding': 'br, gzip'})
        self.assertNotIn('Content-Encoding', plain.headers)
        self.assertEqual(packed.headers['Content-Encoding'], 'gzip')
        self.assertEqual(packed.body, plain.body)
        self.assertLess(len(packed.raw), len(plain.raw))
        self.assertEqual(plain.headers['Vary'], 'Accept-Encoding')
        self.assertNotEqual(plain.headers['ETag'], packed.headers['ETag'])
        refused = self.ok('/api/v1/steps', headers={'Accept-Encoding': 'gzip;q=0'})
        self.assertNotIn('Content-Encoding', refused.headers)

    def test_what_the_client_has_is_304(self):
        for path in ('/api/v1/findings', '/', '/api/v1/since', '/api/v1/heat/self/peers/max/0-0/0/0',
                     '/api/v1/heat/cols?from=0&to=9&rows=4'):
            tag = self.ok(path).headers['ETag']
            a = self.host.ask(path, headers={'If-None-Match': '"other", ' + tag})
            self.assertEqual((a.status, a.raw, a.headers['ETag']), (304, b'', tag), path)
            self.ok(path, headers={'If-None-Match': '"other"'})

    def test_requests_share_a_connection(self):
        conn = http.client.HTTPConnection('127.0.0.1', self.host.port, timeout=10)
        for _ in range(20):
            conn.request('GET', '/api/v1/run')
            self.assertEqual(conn.getresponse().read()[:7], b'{"run":')
        conn.close()

    def test_many_clients_at_once(self):
        failures = []

        def client():
            for path in ('/api/v1/boot', '/api/v1/step/50', '/api/v1/heat/self/peers/max/0-0/0/0'):
                a = self.host.ask(path)
                if a.status != 200:
                    failures.append((path, a.status, a.body))
        threads = [threading.Thread(target=client) for _ in range(40)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])


class Heat(ServeTest):
    def tile(self, path):
        a = self.ok('/api/v1/heat/' + path, headers={'Accept-Encoding': 'gzip'})
        self.assertEqual(a.headers['Content-Encoding'], 'gzip')
        self.assertEqual(len(a.body), 64 + 65536)
        self.assertEqual(a.body[:4], b'SLHT')
        return a

    def raw_value(self, a, code):
        lo, hi = struct.unpack_from('<dd', a.body, 24)
        return lo * (hi / lo) ** ((code - 3) / 248)

    def code_width(self, a):
        lo, hi = struct.unpack_from('<dd', a.body, 24)
        return (hi / lo) ** (1 / 248)

    def test_a_tile_is_the_values_of_the_database(self):
        a = self.tile('self/raw/max/0-0/0/0')
        width = self.code_width(a)
        for step, rank, value in self.db.execute('SELECT step, rank, self_ns FROM rank_step WHERE step < 256'):
            code = a.body[64 + rank * 256 + step]
            self.assertTrue(3 <= code <= 251, (step, rank, code))
            self.assertLessEqual(abs(math.log(self.raw_value(a, code) / value)), math.log(width))

    def test_the_slow_rank_stands_out_against_its_peers(self):
        a = self.tile('self/peers/max/0-0/0/0')
        row = a.body[64 + SLOW_RANK * 256:64 + SLOW_RANK * 256 + 256]
        others = a.body[64:64 + 256]
        self.assertTrue(all(row[s] > others[s] + 50 for s in range(40, 256)))
        self.assertTrue(all(abs(row[s] - others[s]) <= 1 for s in range(0, 40) if s != 5))

    def test_missing_and_never_expected_are_told_apart(self):
        a = self.tile('self/peers/max/0-0/0/0')
        self.assertEqual(a.body[64 + 3 * 256 + 7], 1)
        self.assertEqual(a.body[64 + 4 * 256 + 7], 0)
        last = self.tile('self/peers/max/0-0/2/0')
        self.assertEqual(last.body[64 + N_STEPS - 512], 0)
        self.assertGreater(last.body[64 + LAST - 512], 2)

    def test_packed_and_plain_are_the_same_tile(self):
        packed = self.tile('self/raw/mean/1-1/0/0')
        plain = self.ok('/api/v1/heat/self/raw/mean/1-1/0/0')
        self.assertEqual(plain.body, packed.body)
        self.assertLess(len(packed.raw), len(plain.raw))

    def test_the_header_names_the_tile(self):
        a = self.tile('step/raw/min/2-1/0/0')
        self.assertEqual(struct.unpack_from('<H', a.body, 4)[0], 1)
        self.assertEqual(list(a.body[8:13]), [7, 1, 2, 2, 1])
        self.assertEqual(struct.unpack_from('<II', a.body, 16), (0, 0))

    def test_only_a_sealed_tile_of_this_run_is_kept_for_ever(self):
        rev = self.ok('/api/v1/boot').json()['heat']['rev']
        sealed = self.tile('self/peers/max/0-0/0/0?rev=%d' % rev)
        self.assertEqual(struct.unpack_from('<H', sealed.body, 6)[0] & 1, 1)
        self.assertIn('immutable', sealed.headers['Cache-Control'])
        for path in ('self/peers/max/0-0/0/0', 'self/peers/max/0-0/0/0?rev=5',
                     'self/peers/max/0-0/1/0?rev=%d' % rev):
            self.assertNotIn('immutable', self.tile(path).headers['Cache-Control'], path)

    def test_a_changed_cell_changes_tile_and_tag(self):
        path = 'self/raw/max/0-0/1/0'
        before = self.tile(path)
        try:
            self.host.tell('put 290 1 900000000000 0.9')
            after = self.tile(path)
            self.assertNotEqual(before.headers['ETag'], after.headers['ETag'])
            self.assertNotEqual(before.body[64:], after.body[64:])
        finally:
            self.host.tell('put 290 1 %d 0.0' % self_ns(290, 1))

    def test_columns_are_the_columns_of_the_tiles(self):
        a = self.ok('/api/v1/heat/cols?metric=self&baseline=raw&agg=max&from=250&to=260&rows=4')
        self.assertEqual(len(a.body), 64 + 11 * 4)
        self.assertEqual(struct.unpack_from('<II', a.body, 16), (250, 0))
        tiles = [self.tile('self/raw/max/0-0/%d/0' % x).body for x in (0, 1)]
        for step in range(250, 261):
            want = bytes(tiles[step // 256][64 + r * 256 + step % 256] for r in range(4))
            self.assertEqual(a.body[64 + (step - 250) * 4:][:4], want)

    def test_folded_columns_keep_the_largest(self):
        whole = self.ok('/api/v1/heat/cols?baseline=raw&from=50&to=59&rows=4').body[64:]
        folded = self.ok('/api/v1/heat/cols?baseline=raw&from=50&to=59&rows=2').body[64:]
        least = self.ok('/api/v1/heat/cols?baseline=raw&agg=min&from=50&to=59&rows=1').body[64:]
        for i in range(10):
            col = whole[4 * i:4 * i + 4]
            self.assertEqual(list(folded[2 * i:2 * i + 2]), [max(col[:2]), max(col[2:])])
            self.assertEqual(least[i], min(col))

    def test_more_rows_than_ranks_repeat_them(self):
        a = self.ok('/api/v1/heat/cols?baseline=raw&from=50&to=50&rows=8').body[64:]
        b = self.ok('/api/v1/heat/cols?baseline=raw&from=50&to=50&rows=4').body[64:]
        self.assertEqual(list(a), [c for c in b for _ in range(2)])

    def test_columns_beyond_the_run_are_empty(self):
        a = self.ok('/api/v1/heat/cols?from=4294967000&to=4294967294&rows=3')
        self.assertEqual(a.body[64:], bytes(295 * 3))


class Live(ServeTest):
    def test_hello_then_what_happens(self):
        e = Events(self.host).begin()
        self.assertEqual(e.response.getheader('Content-Type'), 'text/event-stream')
        self.assertEqual(e.response.getheader('Cache-Control'), 'no-store')
        self.assertEqual(e.response.getheader('X-Accel-Buffering'), 'no')
        self.assertEqual(e.response.getheader('Content-Security-Policy'), CSP)
        at, name, data = e.next()
        self.assertEqual((name, data['cursor']), ('hello', at))
        self.host.tell('step 7')
        self.assertEqual(e.next()[1:], ('step', {'step': 7, 'rev': self.rev()}))
        self.host.tell('finding 3 slow.fixed_rank slow', 'rank 2 died', 'drop 12', 'clock 900')
        got = [e.next() for _ in range(4)]
        self.assertEqual([g[1:] for g in got], [
            ('finding', {'id': 3, 'class': 'slow.fixed_rank', 'severity': 'slow'}),
            ('rank', {'rank': 2, 'state': 'died'}), ('drop', {'total': 12}),
            ('clock', {'error_ns': 900})])
        self.assertEqual([g[0] for g in got], list(range(at + 2, at + 6)))
        e.close()

    def rev(self):
        return self.ok('/api/v1/boot').json()['heat']['rev']

    def test_a_burst_is_folded_and_says_so(self):
        time.sleep(0.05)
        e = Events(self.host).begin()
        e.next()
        self.host.tell(*['step %d' % n for n in range(100, 200)])
        events = []
        while not events or events[-1][2]['step'] != 199:
            events.append(e.next())
        self.assertLess(len(events), 20)
        self.assertEqual(sum(ev[2].get('n', 1) for ev in events), 100)
        e.close()

    def test_a_stream_resumes_where_it_was(self):
        cursor = self.ok('/api/v1/since').json()['cursor']
        for n in (1, 2, 3):
            self.host.tell('drop %d' % n)
            time.sleep(0.03)
        e = Events(self.host, last_id=cursor + 1).begin()
        self.assertEqual(e.next()[1], 'hello')
        self.assertEqual([e.next()[2]['total'] for _ in range(2)], [2, 3])
        e.close()
        e = Events(self.host, query='?cursor=%d' % (cursor + 2)).begin()
        e.next()
        self.assertEqual(e.next()[2]['total'], 3)
        e.close()

    def test_a_cursor_that_is_not_ours_is_reset(self):
        for last in ('5', '99999999999999999', 'x', '-1'):
            e = Events(self.host, last_id=last).begin()
            self.assertEqual(e.next()[1], 'hello')
            self.assertEqual(e.next()[1:], ('reset', {}))
            e.close()

    def test_polling_gives_the_same_events(self):
        first = self.ok('/api/v1/since').json()
        self.assertEqual((first['events'], first['reset']), ([], False))
        self.host.tell('rank 1 left')
        time.sleep(0.05)
        a = self.ok('/api/v1/since?cursor=%d' % first['cursor'])
        second = a.json()
        self.assertEqual(second['events'][-1], {'id': second['cursor'], 'event': 'rank',
                                                'data': {'rank': 1, 'state': 'left'}})
        path = '/api/v1/since?cursor=%d' % second['cursor']
        tag = self.ok(path).headers['ETag']
        self.assertEqual(self.host.ask(path, headers={'If-None-Match': tag}).status, 304)
        self.assertTrue(self.ok('/api/v1/since?cursor=3').json()['reset'])

    def test_silence_has_a_heartbeat(self):
        e = Events(self.host).begin()
        e.next()
        start = time.monotonic()
        self.assertEqual(e.next()[1], ':')
        self.assertEqual(e.next()[1], ':')
        self.assertGreater(time.monotonic() - start, 0.4)
        e.close()

    def test_more_than_64_streams_are_told_to_poll(self):
        end = time.monotonic() + 5
        while self.streams() > 0: # of the test before
            self.assertLess(time.monotonic(), end)
        streams = [Events(self.host).begin() for _ in range(64)]
        self.addCleanup(lambda: [e.close() for e in streams])
        for e in streams:
            self.assertEqual(e.next()[1], 'hello')
        a = self.host.ask('/api/v1/events')
        self.assertIn('since', self.problem(a, 503)['hint'])
        self.assertTrue(a.headers['Retry-After'])
        self.host.tell('drop 77')
        for e in streams:
            while e.next()[1:] != ('drop', {'total': 77}):
                pass
            e.close()
        # The places of those that left are free again soon.
        end = time.monotonic() + 5
        while True:
            e = Events(self.host).begin()
            status = e.response.status
            e.close()
            if status == 200:
                break
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_a_stream_by_head_ends_at_once(self):
        a = self.host.ask('/api/v1/events', 'HEAD')
        self.assertEqual((a.status, a.raw), (200, b''))


class Slow(ServeTest):
    options = ('gap_ms=1', 'slow_ms=1000')

    def test_a_client_that_does_not_read_is_dropped_and_others_are_not(self):
        slow = Events(self.host, receive_buffer=2048)
        good = Events(self.host).begin()
        self.assertEqual(good.next()[1], 'hello')
        got = []

        def read():
            while True:
                e = good.next()
                got.append(e)
                if e is None or e[1:] == ('drop', {'total': 9}):
                    return
        reader = threading.Thread(target=read)
        reader.start()
        end = time.monotonic() + 20
        name = 'slow.' + 'x' * 58
        while self.streams() != 1:
            self.assertLess(time.monotonic(), end, 'the slow one is still there')
            self.host.tell(*['finding %d %s slow' % (i, name) for i in range(50)])
            self.host.tell('rank 1 ' + 'y' * 60, 'step 4', 'clock 5')
        self.host.tell('drop 9')
        reader.join(10)
        self.assertEqual(got[-1][1:], ('drop', {'total': 9}))
        ids = [e[0] for e in got if e[0] is not None]
        self.assertEqual(ids, list(range(ids[0], ids[0] + len(ids))))
        good.close()
        slow.sock.close()


class Token(ServeTest):
    options = ('token=s3cret-token', 'host=dash.example')

    def test_data_wants_the_token_and_the_page_does_not(self):
        for path in ('/api/v1/boot', '/api/v1/events', '/api/v1/since', '/metrics',
                     '/api/v1/heat/self/peers/max/0-0/0/0', '/api/v1/nothing'):
            a = self.host.ask(path)
            self.problem(a, 401)
            self.assertTrue(a.headers['WWW-Authenticate'].startswith('Bearer'))
        for path in ('/', '/healthz', '/readyz'):
            self.ok(path)

    def test_wrong_tokens_are_401(self):
        for value in ('Bearer ', 'Bearer s3cret-toke', 'Bearer s3cret-tokenx', 'Bearer S3cret-token',
                      'Basic s3cret-token', 's3cret-token', 'Bearer x s3cret-token'):
            self.problem(self.host.ask('/api/v1/run', headers={'Authorization': value}), 401)
        for value in ('syncline=', 'syncline=x', 'other=s3cret-token'):
            self.problem(self.host.ask('/api/v1/run', headers={'Cookie': value}), 401)

    def test_bearer_and_cookie_open(self):
        self.ok('/api/v1/run', headers={'Authorization': 'Bearer s3cret-token'})
        self.ok('/api/v1/run', headers={'Authorization': 'bearer s3cret-token'})
        self.ok('/api/v1/run', headers={'Cookie': 'a=b; syncline=s3cret-token'})

    def test_login_turns_the_token_into_a_cookie(self):
        a = self.host.ask('/api/v1/login', 'POST', body='{"token":"s3cret-token"}')
        self.assertEqual((a.status, a.raw), (204, b''))
        cookie = a.headers['Set-Cookie']
        self.assertEqual(cookie, 'syncline=s3cret-token; HttpOnly; SameSite=Strict; Path=/')
        self.ok('/api/v1/run', headers={'Cookie': cookie.split(';')[0]})
        a = self.host.ask('/api/v1/login', 'POST', body='{"token":"wrong"}')
        self.problem(a, 403)
        self.assertNotIn('Set-Cookie', a.headers)
        for body in ('', '{', '[]', '{"token":1}', '"s3cret-token"', '\xff'):
            self.problem(self.host.ask('/api/v1/login', 'POST', body=body.encode('latin-1')), 400)

    def test_a_configured_name_is_answered(self):
        self.ok('/', headers={'Host': 'dash.example'})
        self.ok('/', headers={'Host': 'Dash.Example:443'})
        self.problem(self.host.ask('/', headers={'Host': 'dash.example.evil'}), 421)


class EarlierRelease(ServeTest):
    """A finished run of a release that had no clock probes."""
    options = ('read-only',)

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='syncline-serve-')
        cls.db_path = os.path.join(cls.folder, 'run.db')
        cls.db = make_catalogue(cls.db_path)
        cls.db.execute('DROP VIEW clock_path')
        cls.db.execute('DROP TABLE raw_clock_path')
        cls.db.execute('PRAGMA user_version = 1')
        cls.host = Host(cls.db_path, 'gap_ms=20', 'heartbeat_ms=400', *cls.options)
        cls.host.wait_ready()

    def test_its_clocks_are_shown_without_a_path(self):
        hosts = self.ok('/api/v1/clocks').json()['hosts']
        self.assertEqual([(h['way'], h['why']) for h in hosts], [(None, None)] * 2)
        self.assertEqual(self.ok('/api/v1/boot').json()['clock']['by_stream'], 0)


class ReadOnly(ServeTest):
    options = ('read-only',)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host.wait_ready()

    def test_a_finished_run_is_a_snapshot(self):
        b = self.ok('/api/v1/boot').json()
        self.assertEqual(b['live']['state'], 'snapshot')
        self.assertIsNone(b['live']['listen'])
        self.assertEqual(b['live']['last_event_ns'],
                         str(T0 + LAST * 50 * MS + self_ns(LAST, 2) + MS))
        self.assertEqual(b['coverage'], {'ranks_expected': 4, 'ranks_seen': 4, 'events': 0,
                                         'events_lost': 10, 'drops': 10, 'collectives_hidden': False})
        self.assertEqual(b['clock'], {'error_ns': 400, 'hosts': 2, 'unaligned': 1, 'by_stream': 0})
        self.assertEqual(b['overhead'], {'agent_cpu_ratio': None, 'known': False})
        self.assertEqual(b['axes'], {'first_step': 0, 'last_step': LAST, 'n_ranks': 4})

    def test_its_picture_comes_from_the_rows(self):
        a = self.ok('/api/v1/heat/self/peers/max/0-0/0/0')
        self.assertGreater(a.body[64 + SLOW_RANK * 256 + 100], a.body[64 + 100] + 50)


class Start(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='syncline-serve-')
        self.db_path = os.path.join(self.folder, 'a run%20.db')
        self.db = make_catalogue(self.db_path)

    def tearDown(self):
        self.db.close()
        os.chmod(self.folder, 0o700)
        shutil.rmtree(self.folder)

    def refused(self, *arguments):
        r = subprocess.run([HOST, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=20)
        self.assertEqual(r.returncode, 3, r.stderr)
        return r.stderr

    def test_a_bad_address_is_a_sentence(self):
        for address in ('', '8080', '127.0.0.1', '127.0.0.1:', '127.0.0.1:x', '127.0.0.1:65536',
                        '::1:80', '[127.0.0.1:80', ':80', '1.2.3:x80'):
            self.assertIn('ADDRESS:PORT', self.refused(self.db_path, address), address)

    def test_a_port_in_use_is_a_sentence(self):
        with socket.create_server(('127.0.0.1', 0)) as s:
            said = self.refused(self.db_path, '127.0.0.1:%d' % s.getsockname()[1])
        self.assertIn('in use', said)

    def test_an_address_of_somebody_else_is_a_sentence(self):
        self.assertIn('cannot serve HTTP at 192.0.2.1:8080',
                      self.refused(self.db_path, '192.0.2.1:8080', 'token=abc'))

    def test_beyond_loopback_a_token_is_needed(self):
        self.assertIn('--http-token-file', self.refused(self.db_path, '0.0.0.0:0'))
        host = Host(self.db_path, 'token=abc', http_at='0.0.0.0:0')
        self.assertEqual(host.ask('/', headers={'Host': '10.1.2.3:80'}).status, 200)
        self.assertEqual(host.ask('/', headers={'Host': 'evil.example'}).status, 421)
        self.assertEqual(host.close(), 0)

    def test_a_token_that_no_cookie_can_hold_is_refused(self):
        for token in ('', 'a b', 'a;b', 'ä', 'x' * 257):
            self.assertIn('token', self.refused(self.db_path, '127.0.0.1:0', 'token=' + token))

    def test_what_is_no_catalogue_is_refused_read_only(self):
        for name, content in (('none.db', None), ('text.db', b'hello ' * 1000), ('empty.db', b'')):
            path = os.path.join(self.folder, name)
            if content is not None:
                with open(path, 'wb') as f:
                    f.write(content)
            self.assertIn('cannot read the catalogue', self.refused(path, '127.0.0.1:0', 'read-only'))

    def test_a_finished_run_in_a_folder_that_cannot_be_written(self):
        self.db.close()
        before = sorted(os.listdir(self.folder))
        os.chmod(self.folder, 0o500)
        host = Host(self.db_path, 'read-only')
        host.wait_ready()
        self.assertEqual(host.ask('/api/v1/step/50').status, 200)
        self.assertEqual(host.close(), 0)
        self.assertEqual(sorted(os.listdir(self.folder)), before) # root may write: it must not

    def test_a_finished_run_that_is_written_again_is_read_anew(self):
        self.db.close()
        host = Host(self.db_path, 'read-only')
        host.wait_ready()
        self.db = sqlite3.connect(self.db_path)
        put(self.db, 'raw_step', step=900, begin_ns=T0, dur_ns=1, dur_err_ns=1, n_ranks=4, complete=1)
        self.db.commit()
        self.assertEqual(host.ask('/api/v1/step/900').status, 200)
        self.assertEqual(host.close(), 0)

    def test_before_the_load_is_done_nothing_is_told_of_the_run(self):
        host = Host(self.db_path, 'read-only', 'hold')
        for path in ('/api/v1/boot', '/api/v1/run', '/metrics', '/readyz',
                     '/api/v1/heat/self/peers/max/0-0/0/0'):
            a = host.ask(path)
            self.assertEqual((a.status, a.headers['Retry-After']), (503, '1'), path)
            p = a.json()
            self.assertEqual(p['detail'], 'Reading the catalogue.')
            self.assertIn('Ask again', p['hint'])
        self.assertEqual(host.ask('/healthz').status, 200)
        host.tell('release')
        host.wait_ready()
        b = host.ask('/api/v1/boot').json()
        self.assertEqual((b['live']['state'], b['coverage']['ranks_seen']), ('snapshot', 4))
        self.assertEqual(host.close(), 0)

    def add_step(self, step):
        put(self.db, 'raw_step', step=step, begin_ns=T0 + step * 50 * MS, dur_ns=MS, dur_err_ns=1,
            n_ranks=5, complete=1)
        for rank in range(5):
            put(self.db, 'raw_rank_step', step=step, rank=rank, begin_ns=T0, dur_ns=MS, self_ns=MS,
                n_peers=5, coverage=1.0)
        put(self.db, 'raw_process', process_id=20, host_id=1, agent=1, unique_id=20, pid=120,
            rank=4, world_size=5, restart_count=0, host_started_ns=1, state='alive')
        self.db.commit()

    def written_meanwhile(self, host):
        """Every answer is of one moment, before or after, and the later one comes."""
        host.wait_ready()
        before = host.ask('/api/v1/boot').json()
        events = Events(host).begin()
        events.next()
        self.add_step(900)
        moments = set()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            b = host.ask('/api/v1/boot').json()
            moments.add((b['live']['step'], b['axes']['last_step'], b['axes']['n_ranks'],
                         b['coverage']['ranks_seen']))
            if b['live']['step'] == 900:
                break
            time.sleep(0.1)
        self.assertLessEqual(moments, {(LAST, LAST, 4, 4), (900, 900, 5, 5)})
        self.assertIn((900, 900, 5, 5), moments)
        self.assertGreater(b['heat']['rev'], before['heat']['rev'])
        _, name, data = events.next()
        self.assertEqual((name, data['step']), ('step', 900))
        events.close()
        self.assertEqual(host.ask('/api/v1/heat/self/peers/max/0-0/0/3').status, 200)
        rev = b['heat']['rev']
        time.sleep(2.5)
        self.assertEqual(host.ask('/api/v1/boot').json()['heat']['rev'], rev) # loaded once
        self.assertEqual(host.close(), 0)

    def test_a_file_that_is_being_written_is_loaded_again_as_a_whole(self):
        self.written_meanwhile(Host(self.db_path, 'read-only'))

    def test_a_finished_file_that_is_written_again_is_loaded_again_as_a_whole(self):
        self.db.close()
        host = Host(self.db_path, 'read-only')
        self.db = sqlite3.connect(self.db_path)
        self.written_meanwhile(host)

    def test_a_locked_catalogue_is_503_with_retry_after(self):
        self.db.execute('PRAGMA journal_mode = DELETE')
        host = Host(self.db_path)
        self.db.execute('BEGIN EXCLUSIVE')
        a = host.ask('/api/v1/ranks')
        self.assertEqual((a.status, bool(a.headers['Retry-After'])), (503, True))
        self.assertEqual(host.ask('/readyz').status, 503)
        self.assertEqual(host.ask('/healthz').status, 200)
        self.db.execute('ROLLBACK')
        self.assertEqual(host.ask('/api/v1/ranks').status, 200)
        self.assertEqual(host.close(), 0)

    def test_a_question_that_takes_too_long_is_503(self):
        self.db.execute('INSERT INTO raw_step SELECT value + 1000, 1, 1, 1, 1, 1, 1 '
                        'FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n '
                        'LIMIT 400000) SELECT value FROM n)')
        self.db.commit()
        host = Host(self.db_path, 'query_ms=1')
        a = host.ask('/metrics')
        self.assertEqual(a.status, 503)
        self.assertIn('longer', a.json()['detail'])
        self.assertEqual(host.close(), 0)

    def test_a_catalogue_without_a_run_is_ready_and_waits(self):
        for table in ('raw_run', 'raw_process', 'raw_step', 'raw_rank_step', 'raw_verdict'):
            self.db.execute('DELETE FROM ' + table)
        self.db.commit()
        host = Host(self.db_path)
        self.assertEqual(host.ask('/readyz').status, 200)
        b = host.ask('/api/v1/boot').json()
        self.assertEqual(b['run'], dict.fromkeys(
            ('run_id', 'name', 'world_size', 'started_ns', 'ended_ns')))
        self.assertEqual((b['live']['step'], b['findings']), (None, []))
        self.assertEqual(b['axes'], {'first_step': None, 'last_step': None, 'n_ranks': 0})
        self.assertEqual(host.ask('/metrics').status, 200)
        a = host.ask('/api/v1/heat/self/peers/max/0-0/0/0')
        self.assertEqual((a.status, a.body[64:]), (200, bytes(65536)))
        self.assertEqual(host.close(), 0)

    def test_a_stop_says_bye_and_ends_everything(self):
        host = Host(self.db_path)
        e = Events(host).begin()
        self.assertEqual(e.next()[1], 'hello')
        start = time.monotonic()
        self.assertEqual(host.close(), 0)
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(e.next()[1:], ('bye', {'reason': 'stopping'}))
        self.assertIsNone(e.next())
        e.close()

    def test_a_stop_does_not_wait_for_a_reader_that_never_reads(self):
        host = Host(self.db_path)
        s = socket.create_connection(('127.0.0.1', host.port))
        s.sendall(b'GET /api/v1/steps HTTP/1.1\r\nHost: localhost\r\n\r\n' * 50)
        self.assertEqual(host.close(), 0)
        s.close()


if __name__ == '__main__':
    HOST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2 if '-v' in sys.argv else 1)
