/* live.test.mjs - a real training watched in Chromium while it runs.
 *
 * The page is opened before the first step and never loaded again: it goes from
 * waiting to live to no link by itself.
 */

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { BUILD, launch, lineOf, NO_BROWSER } from './browser.mjs';

const has_torch = spawnSync('/usr/bin/python3', ['-c', 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)']).status === 0;
const MAY = { skip: NO_BROWSER || (has_torch ? false : 'python3-torch is missing: apt install python3-torch') };

let scratch, demo, base, browser, page;

async function until(what, ask, ms) {
  const end = Date.now() + ms;
  for (;;) {
    const got = await ask();
    if (got)
      return got;
    assert.ok(Date.now() < end, `${what}: not within ${ms} ms`);
    await new Promise((ok) => setTimeout(ok, 20));
  }
}

const text = (selector) => page.evaluate((s) => document.querySelector(s)?.textContent ?? '', selector);

before(async () => {
  if (MAY.skip)
    return;
  scratch = mkdtempSync(join(tmpdir(), 'syncline-live-'));
  browser = await launch();
  demo = spawn(join(BUILD, 'syncline'), ['demo', '--healthy', '--seconds', '20', '--db', join(scratch, 'run.db')],
               { stdio: ['ignore', 'pipe', 'pipe'] });
  demo.stdout.resume();
  base = (await lineOf(demo, demo.stderr, /dashboard (http:\S+)/))[1];
  page = await (await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' })).newPage();
  await page.goto(`${base}#/heat`);
});

after(async () => {
  await browser?.close();
  if (demo && demo.exitCode === null) {
    demo.kill('SIGINT');
    await new Promise((ok) => demo.once('exit', ok));
  }
  if (scratch)
    rmSync(scratch, { recursive: true });
});

test('the page goes from waiting to live without a reload', MAY, async () => {
  await until('live', async () => /LIVE/.test(await text('.pill')), 60000);
  await until('cells', () => page.evaluate(() => document.querySelector('.heat .cells')?.width > 20), 10000);
});

test('a new step is drawn within 500 ms of its event', MAY, async (t) => {
  const reader = (await fetch(new URL('api/v1/events', base))).body.getReader(), took_ms = [];
  for (let n = 0; n < 5; n++) {
    let seen = '', step = -1;
    while (step < 0) {
      const { value, done } = await reader.read();
      assert.ok(!done, 'the stream ended');
      seen += new TextDecoder().decode(value);
      step = Number([...seen.matchAll(/event: step\ndata: \{"step":\s*(\d+)/g)].pop()?.[1] ?? -1);
    }
    const from = Date.now();
    /* Drawn means: the axis reaches it, and its column is not empty paper. */
    await until(`step ${step}`, () => page.evaluate((want) => {
      const range = /steps (\d+)–(\d+)$/.exec(document.querySelector('.range').textContent.replace(/,/g, ''));
      const c = document.querySelector('.heat .cells'), nx = range[2] - range[1] + 1;
      const px = c.getContext('2d').getImageData(Math.floor(((want - range[1] + 0.4) * c.width) / nx), Math.floor(0.1 * c.height), 1, 1).data;
      return Number(range[2]) >= want && !(px[0] === 0xe9 && px[1] === 0xec && px[2] === 0xef);
    }, step), 500);
    took_ms.push(Date.now() - from);
  }
  t.diagnostic(`drawn after ${took_ms.join(', ')} ms`);
  await reader.cancel();
});

test('when the collector is gone the page says so and keeps the last picture', MAY, async () => {
  demo.kill('SIGINT');
  await until('the word', async () => /NO LINK|ENDED|SNAPSHOT/.test(await text('.pill')), 60000);
  await until('no link', async () => /NO LINK/.test(await text('.pill')), 60000);
  assert.match(await text('.banner'), /does not answer.*old/s);
  assert.ok(await page.evaluate(() => document.querySelector('.heat .cells').width > 20));
});
