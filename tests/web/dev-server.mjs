/* dev-server.mjs - docs/api.md over a made-up run, to work on the page without a
 * collector. A tool for developers: the tests in CI run against the real one.
 *
 *   node tests/web/dev-server.mjs [--port N] [--ranks N] [--steps N] [--live MS]
 *                                 [--state S] [--healthy] [--marks] [--token T]
 *
 * --live MS    one more step each MS milliseconds
 * --state S    waiting, stale, ended, snapshot
 * --marks      some cells missing, undecided, out of range, not finite; drops
 */

import { createServer } from 'node:http';
import { createReadStream, existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const arg = (name, fallback) => {
  const i = process.argv.indexOf(`--${name}`);
  return i < 0 ? fallback : process.argv[i + 1];
};
const has = (name) => process.argv.includes(`--${name}`);
const DIST = join(dirname(fileURLToPath(import.meta.url)), '../../web/dist');
const N_RANKS = Number(arg('ranks', 4)), SLOW = Math.min(2, N_RANKS - 1), ONSET = 120;
const LIVE_MS = Number(arg('live', 0)), TOKEN = arg('token', ''), MARKS = has('marks'), HEALTHY = has('healthy');
const STATE = arg('state', LIVE_MS > 0 ? 'live' : 'snapshot');
const T0 = 1790000000000000000n, STEP_NS = 118e6;
let n_steps = STATE === 'waiting' ? 0 : Number(arg('steps', 300));

export const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; " +
  "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/* Noise that depends only on its place. */
function noise(...at) {
  let h = 2166136261;
  for (const v of at)
    h = Math.imul(h ^ v, 16777619) ^ (h >>> 13);
  h = Math.imul(h ^ (h >>> 15), 2246822519);
  return ((h ^ (h >>> 13)) >>> 0) / 4294967296 - 0.5;
}

const slowdown = (rank, step) => (!HEALTHY && rank === SLOW && step >= ONSET ? 1.6 : 1);

function rankStep(rank, step) {
  const k = slowdown(rank, step), n = (i) => 1 + 0.03 * noise(rank, step, i);
  const fwd = 24e6 * k * n(1), bwd = 41e6 * k * n(2), opt = 4e6 * n(3), input = 2.2e6 * n(4);
  return { fwd, bwd, opt, input, self: fwd + bwd + opt + input };
}

function stepOf(step) {
  const all = Array.from({ length: N_RANKS }, (_, r) => rankStep(r, step));
  const sorted = all.map((v) => v.self).sort((a, b) => a - b), mid = sorted.length >> 1;
  const median = sorted.length % 2 ? sorted[mid] : (sorted[mid - 1] + sorted[mid]) / 2;
  const before_opt = Math.max(...all.map((v) => v.self - v.opt)), transfer = 3.1e6;
  const begin = T0 + BigInt(step) * BigInt(STEP_NS);
  const ranks = all.map((v, rank) => {
    const wait = before_opt - (v.self - v.opt), dur = v.self + wait + transfer + 0.6e6;
    return {
      rank, begin_ns: String(begin + BigInt(Math.round(4e5 * (0.5 + noise(rank, step, 9))))), dur_ns: Math.round(dur), self_ns: Math.round(v.self),
      wait_ns: Math.round(wait), wait_err_ns: 3100, exposed_comm_ns: Math.round(wait + transfer), input_wait_ns: Math.round(v.input),
      fwd_ns: Math.round(v.fwd), bwd_ns: Math.round(v.bwd), opt_ns: Math.round(v.opt), eval_ns: 0, excess_ratio: v.self / median - 1, coverage: 1,
    };
  });
  const slow = ranks.reduce((a, b) => (b.self_ns > a.self_ns ? b : a));
  return {
    begin, transfer, ranks,
    step: { step, begin_ns: String(begin), dur_ns: Math.max(...ranks.map((r) => r.dur_ns)) + 4e5, dur_err_ns: 3100, n_ranks: N_RANKS,
            slowest_rank: slow.excess_ratio > 0.1 ? slow.rank : -1, complete: true },
  };
}

function detail(n) {
  const s = stepOf(n), N_BUCKETS = 3, collectives = [], buckets = [];
  for (let b = 0; b < N_BUCKETS; b++) {
    const share = (b + 1) / N_BUCKETS;
    const late = s.ranks.map((r) => r.input_wait_ns + r.fwd_ns + r.bwd_ns * share), last = Math.max(...late);
    const second = [...late].sort((x, y) => y - x)[1] ?? 0, decided = last - second > 6200;
    collectives.push({
      comm_id: 'default', seq: n * N_BUCKETS + b, op: 'all_reduce', dtype: 'float32', bytes: [4400128, 8912896, 1180672][b],
      skew_ns: Math.round(last - Math.min(...late)), skew_err_ns: 3100, last_rank: decided ? late.indexOf(last) : -1, decided,
      arrivals: late.map((v, rank) => ({ rank, arrival_ns: String(s.begin + BigInt(Math.round(v))), arrival_err_ns: 3100,
                                         wait_ns: Math.round(last - v), dur_ns: Math.round(last - v + s.transfer) })),
    });
    late.forEach((v, rank) => {
      const at = (ns) => String(s.begin + BigInt(Math.round(ns)));
      buckets.push({ rank, bucket: b, micro: 0, bytes: [4400128, 8912896, 1180672][b], ready_ns: at(v - 2e5), submitted_ns: at(v), started_ns: at(last),
                     reduced_ns: at(last + s.transfer), applied_ns: at(last + s.transfer + 2e6) });
    });
  }
  return { step: s.step, ranks: s.ranks, collectives, buckets };
}

const A = (() => {
  let lo = 0.001, hi = 1;
  for (let i = 0; i < 60; i++) {
    const a = (lo + hi) / 2;
    (a / 0.0025) * (Math.asinh(4 / a) + Math.asinh(0.5 / a)) < 248 ? lo = a : hi = a;
  }
  return lo;
})();
const RAW_LO = 1e5, RAW_HI = 1e9;

const coded = new Map();
function code(metric, baseline, rank, step) {
  const key = `${metric}/${baseline}/${step}`;
  if (!coded.has(key))
    coded.set(key, Uint8Array.from({ length: N_RANKS }, (_, r) => codeOf(metric, baseline, r, step)));
  return coded.get(key)[rank];
}

function codeOf(metric, baseline, rank, step) {
  if (MARKS) {
    if (rank === 1 && step >= 30 && step < 45) return 1;
    if (rank === 3 && step >= 60 && step < 70) return 253;
    if (rank === 0 && step === 80) return 254;
    if (rank === 1 && step >= 90 && step < 93) return 252;
  }
  const s = steps_cache(step), r = s.ranks[rank];
  const key = { self: 'self_ns', wait: 'wait_ns', exposed: 'exposed_comm_ns', input: 'input_wait_ns', fwd: 'fwd_ns', bwd: 'bwd_ns', opt: 'opt_ns', step: 'dur_ns' }[metric];
  if (baseline === 'raw')
    return Math.max(2, Math.min(252, 3 + Math.round((Math.log(r[key] / RAW_LO) / Math.log(RAW_HI / RAW_LO)) * 248)));
  s.median ??= {};
  s.median[key] ??= s.ranks.map((v) => v[key]).sort((a, b) => a - b)[N_RANKS >> 1];
  const m = s.median[key];
  return Math.max(2, Math.min(252, 3 + Math.round((Math.asinh((r[key] / m - 1) / A) + Math.asinh(0.5 / A)) * (A / 0.0025))));
}

const cached = new Map();
function steps_cache(n) {
  if (!cached.has(n))
    cached.set(n, stepOf(n));
  return cached.get(n);
}

function tile(metric, baseline, agg, zs, zr, x, y) {
  const b = Buffer.alloc(64 + 65536), metrics = ['self', 'wait', 'exposed', 'input', 'fwd', 'bwd', 'opt', 'step'];
  let any = false;
  for (let i = 0; i < 65536; i++) {
    const r0 = (y * 256 + (i >> 8)) << zr, s0 = (x * 256 + (i & 255)) << zs, codes = [];
    for (let r = r0; r < Math.min(N_RANKS, r0 + 2 ** zr); r++)
      for (let s = s0; s < Math.min(n_steps, s0 + 2 ** zs); s++)
        codes.push(code(metric, baseline, r, s));
    const values = codes.filter((c) => c >= 2 && c <= 252);
    if (codes.length > 0) {
      any = true;
      b[64 + i] = values.length === 0 ? codes[0] : agg === 'max' ? Math.max(...values) : agg === 'min' ? Math.min(...values)
        : Math.round(values.reduce((p, v) => p + v, 0) / values.length);
    }
  }
  const sealed = ((x + 1) * 256) << zs <= n_steps;
  b.write('SLHT', 0, 'latin1');
  b.writeUInt16LE(1, 4);
  b.writeUInt16LE(sealed ? 1 : 0, 6);
  b.set([metrics.indexOf(metric), baseline === 'raw' ? 1 : 0, ['max', 'mean', 'min'].indexOf(agg), zs, zr], 8);
  b.writeUInt32LE(x, 16);
  b.writeUInt32LE(y, 20);
  b.writeDoubleLE(baseline === 'raw' ? RAW_LO : -0.5, 24);
  b.writeDoubleLE(baseline === 'raw' ? RAW_HI : 4, 32);
  b.writeUInt32LE(n_steps, 40);
  return any ? { b, sealed } : null;
}

function findings() {
  if (HEALTHY || n_steps < ONSET + 20)
    return [];
  return [{
    id: 1, class: 'slow.fixed_rank', severity: 'slow', confidence: 'certain', culprit: { ranks: [SLOW], host: 'node-a', detail: 'forward and backward' },
    onset_ns: String(T0 + BigInt(ONSET) * BigInt(STEP_NS)), first_step: ONSET, last_step: n_steps - 1, detected_after_ns: 2.4e9, cost_ratio: 0.53,
    margin_ns: 39.1e6, error_ns: 2100, error_kind: 'hard',
    sentence: `Rank ${SLOW} is slow: its own work takes 56 % longer than its peers' in every step since ${ONSET}; the others wait 39 ms for it.`,
    evidence: [{ view: 'rank_step', step: ONSET, rank: SLOW }], rules_out: ['slow.global: the other ranks kept their pace'],
  }];
}

function facts() {
  const seen = STATE === 'waiting' ? 0 : N_RANKS;
  return {
    run: { run_id: 'demo-1', name: 'demo', world_size: N_RANKS, started_ns: String(T0), ended_ns: STATE === 'ended' || STATE === 'snapshot' ? String(T0 + 40000000000n) : null },
    live: { state: STATE, now_ns: String(T0 + 60000000000n), last_event_ns: String(T0 + 46000000000n), step: n_steps ? n_steps - 1 : null,
            step_ns: n_steps ? STEP_NS : null, n_ranks: seen, n_agents: seen ? 1 : 0, listen: STATE === 'snapshot' ? null : 'tcp://127.0.0.1:7788' },
    coverage: { ranks_expected: N_RANKS, ranks_seen: seen, events: n_steps * N_RANKS * 62, events_lost: 0, drops: MARKS ? 12 : 0 },
    clock: { error_ns: seen ? 3100 : null, hosts: seen ? 1 : 0, unaligned: 0 }, overhead: { agent_cpu_ratio: 0.004, known: seen > 0 },
  };
}

const streams = new Set();
let id = 1;
if (LIVE_MS > 0)
  setInterval(() => {
    n_steps++;
    id++;
    for (const r of streams)
      r.write(`id: ${id}\nevent: step\ndata: ${JSON.stringify({ step: n_steps - 1, rev: n_steps })}\n\n` +
        (n_steps === ONSET + 20 ? `id: ${id}\nevent: finding\ndata: {"id":1,"class":"slow.fixed_rank","severity":"slow"}\n\n` : ''));
  }, LIVE_MS);

const TYPES = { html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };

function answer(q, r) {
  const u = new URL(q.url, 'http://x'), p = u.pathname, n = (k) => Number(u.searchParams.get(k));
  const head = (type, more = {}) => ({ 'Content-Type': type, 'Content-Security-Policy': CSP, 'X-Content-Type-Options': 'nosniff', ...more });
  const json = (v, status = 200) => r.writeHead(status, head(status < 400 ? 'application/json' : 'application/problem+json', { 'Cache-Control': 'no-store' })).end(JSON.stringify(v));
  const missing = (detail) => json({ type: 'about:blank', title: 'Not found', status: 404, detail, hint: '' }, 404);
  let m;
  if (TOKEN && p === '/api/v1/login')
    return void (async () => {
      let body = '';
      for await (const c of q) body += c;
      if (JSON.parse(body).token !== TOKEN) return json({ title: 'Wrong token', status: 401 }, 401);
      r.writeHead(204, { 'Set-Cookie': `syncline=${TOKEN}; HttpOnly; SameSite=Strict; Path=/` }).end();
    })();
  if (TOKEN && p.startsWith('/api/') && q.headers.cookie !== `syncline=${TOKEN}`)
    return json({ title: 'Token wanted', status: 401, detail: '', hint: 'Log in.' }, 401);
  if (p === '/api/v1/boot')
    return json({ ...facts(), axes: { first_step: n_steps ? 0 : null, last_step: n_steps ? n_steps - 1 : null, n_ranks: n_steps ? N_RANKS : 0 },
                  heat: { rev: n_steps, metrics: ['self', 'wait', 'exposed', 'input', 'fwd', 'bwd', 'opt', 'step'], baselines: ['peers', 'raw'], aggs: ['max', 'mean', 'min'] },
                  findings: findings(), cursor: id, version: '0.1.0' });
  if (p === '/api/v1/run') return json(facts());
  if (p === '/api/v1/findings') return json({ findings: findings() });
  if (p === '/api/v1/steps') return json({ steps: Array.from({ length: Math.min(2000, n_steps) }, (_, i) => steps_cache(Math.max(0, n_steps - 2000) + i).step) });
  if ((m = /^\/api\/v1\/step\/(\d+)$/.exec(p)))
    return Number(m[1]) < n_steps ? json(detail(Number(m[1]))) : missing(`Step ${m[1]} has not been seen.`);
  if (p === '/api/v1/cell')
    return n('step') < n_steps && n('rank') < N_RANKS ? json({ step: n('step'), peers: N_RANKS, ...stepOf(n('step')).ranks[n('rank')] }) : missing('No such cell.');
  if ((m = /^\/api\/v1\/heat\/(\w+)\/(\w+)\/(\w+)\/(\d+)-(\d+)\/(\d+)\/(\d+)$/.exec(p))) {
    const t = tile(m[1], m[2], m[3], ...m.slice(4).map(Number));
    return t ? r.writeHead(200, head('application/octet-stream', { 'Cache-Control': t.sealed ? 'max-age=31536000, immutable' : 'no-cache' })).end(t.b) : missing('No data there.');
  }
  if (p === '/api/v1/events') {
    r.writeHead(200, head('text/event-stream', { 'Cache-Control': 'no-store' }));
    r.write(`retry: 2000\nid: ${id}\nevent: hello\ndata: {"cursor":${id},"version":"0.1.0"}\n\n`);
    streams.add(r);
    return q.on('close', () => streams.delete(r));
  }
  if (p === '/api/v1/since') return json({ cursor: id, events: [], reset: false });
  const f = normalize(join(DIST, p === '/' ? 'index.html' : p));
  if (!f.startsWith(DIST) || !existsSync(f)) return missing(p);
  r.writeHead(200, head(TYPES[f.split('.').pop()] ?? 'application/octet-stream'));
  return createReadStream(f).pipe(r);
}

const server = createServer(answer).listen(Number(arg('port', 0)), '127.0.0.1', () => {
  console.log(JSON.stringify({ http: `http://127.0.0.1:${server.address().port}/` }));
});
