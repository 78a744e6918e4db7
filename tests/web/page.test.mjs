/* page.test.mjs - the page in Chromium, over a run whose truth is known.
 *
 * Where the run comes from, first that is set:
 *   SYNCLINE_WEB_URL          a collector that serves already
 *   SYNCLINE_WEB_DEV=1        the made-up run of dev-server.mjs (for developers)
 *   SYNCLINE_DB, or nothing   a catalogue (of make_run.py when not given), served by
 *                             $SYNCLINE_BUILD/syncline-collector --read-only
 * The run has a planted slow rank: SYNCLINE_SLOW_RANK, 2 unless said.
 * SYNCLINE_WEB_SHOTS: a folder for screenshots of every view.
 */

import assert from 'node:assert/strict';
import { spawn, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { axe, BUILD, HERE, launch, NO_BROWSER, started } from './browser.mjs';

const SLOW = Number(process.env.SYNCLINE_SLOW_RANK ?? 2);
const SHOTS = process.env.SYNCLINE_WEB_SHOTS;
const SIZE = { width: 1280, height: 800 };
const MAY = { skip: NO_BROWSER };

let base, server, scratch, browser, context, page, boot, finding;
const violations = [], requests = [], errors = [];

async function serve() {
  const e = process.env;
  if (e.SYNCLINE_WEB_URL)
    return e.SYNCLINE_WEB_URL;
  if (e.SYNCLINE_WEB_DEV) {
    server = spawn(process.execPath, [join(HERE, 'dev-server.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] });
    return started(server, server.stdout);
  }
  let db = e.SYNCLINE_DB;
  if (!db) {
    scratch = mkdtempSync(join(tmpdir(), 'syncline-web-'));
    db = join(scratch, 'run.db');
    execFileSync('python3', [join(HERE, 'make_run.py'), db]);
  }
  server = spawn(join(BUILD, 'syncline-collector'),
    ['--read-only', '--db', db, '--http', '127.0.0.1:0', '--ready-fd', '3'], { stdio: ['ignore', 'ignore', 'inherit', 'pipe'] });
  return started(server, server.stdio[3]);
}

async function open(options = {}) {
  const c = await browser.newContext({ viewport: SIZE, ...options });
  const p = await c.newPage();
  await p.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (v) => window.violations.push(`${v.violatedDirective} ${v.blockedURI}`));
  });
  c.on('request', (r) => requests.push(r.url()));
  p.on('pageerror', (e) => errors.push(e.message));
  p.on('console', (m) => {
    if (/Content.Security.Policy/i.test(m.text()))
      violations.push(m.text());
  });
  return { c, p };
}

/* The policy forbids Playwright's own waiting by string, so ask until it holds. */
async function until(what, ask, ms = 8000) {
  const end = Date.now() + ms;
  for (;;) {
    const got = await ask();
    if (got)
      return got;
    assert.ok(Date.now() < end, `${what}: not within ${ms} ms (at ${page.url()})`);
    await new Promise((ok) => setTimeout(ok, 50));
  }
}

const api = async (path) => (await fetch(new URL(`api/v1/${path}`, base))).json();
const text = (selector, p = page) => p.evaluate((s) => document.querySelector(s)?.textContent ?? '', selector);
const hash = () => page.evaluate(() => location.hash);

async function goto(to, p = page) {
  /* A change of the hash alone does not load; the page must cope with both. */
  await p.goto(new URL(to, base).href);
  await until('the view', () => p.evaluate(() => !!document.querySelector('main h1')));
}

/* Colour of the middle of each cell of a row: "#/heat" with all ranks and s=lo-hi. */
function row(rank, n_ranks, n_steps) {
  return page.evaluate(([r, nr, ns]) => {
    const c = document.querySelector('.heat .cells'), g = c.getContext('2d'), out = [];
    const y = Math.floor(((r + 0.4) * c.height) / nr);
    for (let i = 0; i < ns; i++)
      out.push([...g.getImageData(Math.floor(((i + 0.4) * c.width) / ns), y, 1, 1).data]);
    return out;
  }, [rank, n_ranks, n_steps]);
}

const is_orange = ([r, , b]) => r - b > 40;
const share = (list) => list.filter(is_orange).length / list.length;

before(async () => {
  if (NO_BROWSER)
    return;
  base = await serve();
  browser = await launch();
  ({ c: context, p: page } = await open());
  boot = await api('boot');
  finding = boot.findings.find((f) => f.class === 'slow.fixed_rank');
  assert.ok(finding, `the run ${boot.run.name} has no slow.fixed_rank finding: these tests want the planted rank found`);
  await goto('#/now');
});

after(async () => {
  await browser?.close();
  server?.kill();
  if (scratch)
    rmSync(scratch, { recursive: true });
});

test('the page comes with a policy that allows nothing inline and nothing foreign', MAY, async () => {
  const r = await fetch(base), policy = r.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /script-src 'self'(;|$)/);
  assert.match(policy, /style-src 'self'(;|$)/);
  assert.equal(r.headers.get('x-content-type-options'), 'nosniff');
});

test('a collector that still reads its file is waited for, without an alarm', MAY, async () => {
  const c = await browser.newContext({ viewport: SIZE }), p = await c.newPage();
  let n_asked = 0;
  await p.route('**/api/v1/boot', (route) => (++n_asked > 2 ? route.continue() : route.fulfill({
    status: 503, headers: { 'Retry-After': '1' }, contentType: 'application/problem+json',
    body: JSON.stringify({ title: 'Service Unavailable', status: 503, detail: 'Reading the catalogue.', hint: 'Ask again.' }),
  })));
  await p.goto(new URL('#/now', base).href);
  await until('the reason', async () => (await text('main', p)).includes('Reading the catalogue.'));
  assert.match(await text('.top', p), /LOADING/);
  assert.equal(await p.evaluate(() => document.querySelectorAll('[role=alert]').length), 0);
  await until('the run', () => p.evaluate(() => !!document.querySelector('main h1')));
  assert.equal(n_asked, 3);
  await c.close();
});

test('the header shows drops, clock error and overhead beside the run', MAY, async () => {
  const facts = await text('.facts'), lost = boot.coverage.events_lost + boot.coverage.drops;
  assert.match(await text('.top'), new RegExp(boot.run.name || boot.run.run_id));
  assert.match(facts, new RegExp(`ranks${boot.coverage.ranks_seen}`));
  assert.match(facts, new RegExp(`drops${lost.toLocaleString('en-US')}`));
  assert.match(facts, /clock±/);
  assert.match(facts, /overhead/);
});

test('the finding names the planted rank, how sure, its cost and what next', MAY, async () => {
  assert.deepEqual(finding.culprit.ranks, [SLOW]);
  const card = await text('.finding.slow');
  assert.ok(card.includes(finding.sentence));
  assert.match(card, new RegExp(`rank ${SLOW}`, 'i'));
  assert.match(card, /how sure(Certain|Likely): margin .+±/);
  assert.match(card, /cost.+longer/);
  assert.match(card, /next.+/);
});

test('the finding\'s link lands on its cell of the heatmap', MAY, async () => {
  await goto('#/now');
  await page.evaluate(() => [...document.querySelectorAll('.finding.slow a')].find((a) => a.textContent === 'Show on the heatmap').click());
  await until('the heatmap', () => page.evaluate(() => !!document.querySelector('.heat:not(.mini)')));
  assert.match(await hash(), new RegExp(`^#/heat\\?.*sel=r${SLOW},s${finding.first_step}(&|$)`));
  assert.match(await until('the selection', () => text('.selection')), new RegExp(`rank ${SLOW} · step ${finding.first_step.toLocaleString('en-US')}`));
});

test('the heatmap shows the slow row from its onset on, and no other', MAY, async () => {
  const lo = Math.max(boot.axes.first_step, finding.first_step - 30), hi = Math.min(boot.axes.last_step, finding.first_step + 60);
  const n = hi - lo + 1, before_onset = finding.first_step - lo;
  await goto(`#/heat?m=self&b=peers&c=20&s=${lo}-${hi}`);
  await until('the picture', async () => share((await row(SLOW, boot.axes.n_ranks, n)).slice(before_onset)) > 0.9);
  for (let r = 0; r < boot.axes.n_ranks; r++) {
    const colours = await row(r, boot.axes.n_ranks, n), from = colours.slice(before_onset), until_onset = colours.slice(2, before_onset);
    if (until_onset.length > 4)
      assert.ok(share(until_onset) < 0.3, `rank ${r} is drawn slow in ${share(until_onset)} of the steps before the onset`);
    if (r !== SLOW)
      assert.ok(share(from) < 0.2, `healthy rank ${r} is drawn slow in ${share(from)} of the steps`);
  }
});

test('a click opens that step with the numbers of the API', MAY, async () => {
  const lo = Math.max(boot.axes.first_step, finding.first_step - 5), hi = Math.min(boot.axes.last_step, lo + 30), step = finding.first_step + 3;
  await goto(`#/heat?c=20&s=${lo}-${hi}`);
  const at = await until('the cells', () => page.evaluate(([r, nr, i, ns]) => {
    const c = document.querySelector('.heat .cells'), b = c?.getBoundingClientRect();
    return b && c.width > 100 && { x: b.left + ((i + 0.4) * b.width) / ns, y: b.top + ((r + 0.4) * b.height) / nr };
  }, [SLOW, boot.axes.n_ranks, step - lo, hi - lo + 1]));
  await page.mouse.move(at.x, at.y);
  const cell = await api(`cell?step=${step}&rank=${SLOW}`);
  await until('the hover card with exact values', async () => /self.*vs peers/.test(await text('.card dl')));
  assert.match(await text('.card'), new RegExp(`rank ${SLOW} · step ${step}`));
  await page.mouse.click(at.x, at.y);
  await until('the step', async () => (await text('main h1')).replace(/\D/g, '') === `${step}`);
  assert.match(await hash(), new RegExp(`^#/step\\?.*sel=r${SLOW},s${step}(&|$)`));
  const want = (await api(`step/${step}`)).ranks.map((r) => [r.rank, r.self_ns]).sort((a, b) => a[0] - b[0]);
  const got = await until('the numbers', () => page.evaluate(() => {
    const rows = [...document.querySelectorAll('#rank-numbers tbody tr')].map((r) => [Number(r.dataset.rank), Number(r.dataset.selfNs)]);
    return rows.length > 0 && rows;
  }));
  assert.deepEqual(got, want);
  assert.equal(cell.self_ns, want.find((w) => w[0] === SLOW)[1]);
  assert.ok(await page.evaluate(() => document.querySelectorAll('.collectives tbody tr').length) > 0, 'no collective is listed');
});

test('the state survives a reload', MAY, async () => {
  const to = `#/heat?m=wait&b=raw&a=mean&r=0-${boot.axes.n_ranks - 1}&s=${boot.axes.first_step}-${boot.axes.first_step + 40}&sel=r1,s${boot.axes.first_step + 7}&table=1`;
  await goto(to);
  const look = () => page.evaluate(() => [location.hash, document.querySelector('#metric').value, document.querySelector('#baseline').value,
    document.querySelector('#agg').value, document.querySelector('.selection b').textContent, document.querySelectorAll('table.numbers tbody tr').length]);
  await until('the table', async () => (await look())[5] === boot.axes.n_ranks);
  const first = await look();
  assert.equal(first[0], to);
  await page.reload();
  await until('the table', () => page.evaluate(() => document.querySelectorAll('table.numbers tbody tr').length > 0));
  assert.deepEqual(await look(), first);
});

test('the table says what the picture shows', MAY, async () => {
  await goto(`#/heat?s=${finding.first_step}-${boot.axes.last_step}&table=1`);
  const means = await until('the table', () => page.evaluate((n) => {
    const rows = [...document.querySelectorAll('table.numbers tbody tr')].map((r) => parseFloat(r.cells[1].textContent.replace('−', '-')));
    return rows.length === n && rows.every((v) => !Number.isNaN(v)) && rows;
  }, boot.axes.n_ranks));
  assert.equal(means.indexOf(Math.max(...means)), SLOW);
});

test('the page can be walked by keyboard alone', MAY, async () => {
  const press = async (...keys) => { for (const k of keys) await page.keyboard.press(k); };
  await goto('#/now');
  await page.evaluate(() => document.activeElement?.blur());
  await press('g', 'h');
  await until('the heatmap', async () => (await hash()).startsWith('#/heat'));
  await press('j');
  await until('the first finding', async () => (await hash()).includes(`sel=r${SLOW},s${finding.first_step}`));
  await press('.', '.', ',');
  await until('the next step', async () => (await hash()).includes(`sel=r${SLOW},s${finding.first_step + 1}`));
  await press('[');
  await until('the rank before', async () => (await hash()).includes(`sel=r${SLOW - 1},`));
  await press('+', '+');
  await until('zoom', async () => /[?&]s=\d+-\d+/.test(await hash()));
  const zoomed = await hash();
  await press('ArrowLeft');
  await until('pan', async () => (await hash()) !== zoomed);
  await press('0');
  await until('fit', async () => !/[?&]s=\d+-/.test(await hash()));
  await press('Enter');
  await until('the step', async () => (await hash()).startsWith('#/step'));
  await press('Escape', 'Escape', 'Escape');
  await until('the way up', async () => (await hash()) === '#/now');
  await press('?');
  await until('help', () => page.evaluate(() => document.querySelector('dialog')?.open));
  await press('Escape');
  await until('help to close', () => page.evaluate(() => !document.querySelector('dialog')));
});

for (const colorScheme of ['light', 'dark']) {
  test(`no serious accessibility finding on any view, ${colorScheme}`, MAY, async () => {
    const { c, p } = await open({ colorScheme, reducedMotion: 'reduce' });
    for (const [name, to] of [['now', '#/now'], ['heat', `#/heat?sel=r${SLOW},s${finding.first_step}&table=1`], ['step', `#/step?sel=r${SLOW},s${finding.first_step}`]]) {
      await goto(to, p);
      await until('the picture', () => p.evaluate(() => document.querySelector('.cells, #rank-numbers') !== null));
      await p.waitForTimeout(400);
      if (SHOTS) {
        mkdirSync(SHOTS, { recursive: true });
        await p.screenshot({ path: join(SHOTS, `${name}-${colorScheme}.png`) });
      }
      const cdp = await c.newCDPSession(p);
      await cdp.send('Runtime.evaluate', { expression: axe.source });
      const r = await p.evaluate(async () => (await window.axe.run(document, { resultTypes: ['violations'], preload: false,
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })).violations
        .filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')}`));
      assert.deepEqual(r, [], `${name}, ${colorScheme}`);
    }
    await c.close();
  });
}

test('nothing broke the policy and nothing left the origin', MAY, async () => {
  const own = await page.evaluate(() => window.violations);
  assert.deepEqual([...violations, ...own], []);
  assert.deepEqual(errors, []);
  assert.ok(requests.some((u) => u.includes('/api/v1/boot')), 'requests were not recorded');
  const foreign = requests.filter((u) => !/^(data|blob):/.test(u) && new URL(u).origin !== new URL(base).origin);
  assert.deepEqual(foreign, []);
});
