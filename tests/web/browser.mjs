/* browser.mjs - what the browser tests share. */

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const HERE = dirname(fileURLToPath(import.meta.url));
export const BUILD = process.env.SYNCLINE_BUILD ?? join(HERE, '../../b');

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const require = createRequire(join(HERE, '../../web/package.json')); /* the tools live in web/ */
const { chromium } = require('playwright-core');
export const axe = require('axe-core');

/* Why nothing can be tried here, or false. */
export const NO_BROWSER = existsSync(CHROMIUM) ? false : `${CHROMIUM} is missing: apt install chromium`;

export function launch() {
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--headless'] });
}

/* First line of the stream that the pattern fits; fails when the child ends before. */
export async function lineOf(child, stream, pattern) {
  const lines = createInterface({ input: stream }), seen = [];
  return new Promise((ok, fail) => {
    const ended = (why) => fail(new Error(`the server ended (${why}) before it served:\n${seen.join('\n')}`));
    child.once('exit', ended);
    child.once('error', ended);
    lines.on('line', (text) => {
      const m = pattern.exec(text);
      seen.push(text);
      if (!m)
        return;
      child.off('exit', ended);
      ok(m);
    });
  });
}

/* Servers say where they listen in one line of JSON. */
export async function started(child, stream) {
  return JSON.parse((await lineOf(child, stream, /^\{.*\}$/))[0]).http;
}
