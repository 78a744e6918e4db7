/* test.mjs - the tests of the page: its pure parts (TypeScript bundled by esbuild),
 * then, where $SYNCLINE_BUILD names a build of the programs, the page itself in
 * Chromium over the real collector. node's own test runner runs both. */

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const WEB = join(ROOT, '../tests/web'), FROM = join(WEB, 'unit'), TO = join(ROOT, 'node_modules/.syncline-tests');

rmSync(TO, { recursive: true, force: true });
mkdirSync(TO, { recursive: true });
const entryPoints = readdirSync(FROM).filter((f) => f.endsWith('.test.ts')).map((f) => join(FROM, f));
await build({ entryPoints, outdir: TO, bundle: true, platform: 'node', format: 'esm', target: 'node18',
              outExtension: { '.js': '.mjs' }, sourcemap: 'inline', logLevel: 'warning' });

function run(files, env = {}) {
  const r = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...files],
                      { stdio: 'inherit', env: { ...process.env, ...env } });
  return r.status ?? 1;
}

let status = run(readdirSync(TO).filter((f) => f.endsWith('.test.mjs')).map((f) => join(TO, f)));
if (process.env.SYNCLINE_BUILD || process.env.SYNCLINE_WEB_URL || process.env.SYNCLINE_WEB_DEV) {
  const env = process.env.SYNCLINE_BUILD ? { SYNCLINE_BUILD: resolve(process.env.SYNCLINE_BUILD) } : {};
  status = run([join(WEB, 'page.test.mjs')], env) || status;
  /* One after the other: the live test measures time. */
  if (process.env.SYNCLINE_BUILD)
    status = run([join(WEB, 'live.test.mjs')], env) || status;
} else {
  console.log('# SYNCLINE_BUILD is not set: the page was not opened in a browser');
}
process.exit(status);
