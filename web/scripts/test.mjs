/* test.mjs - the unit tests of the page: TypeScript bundled by esbuild, run by
 * node's own test runner. */

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const FROM = join(ROOT, '../tests/web/unit'), TO = join(ROOT, 'node_modules/.syncline-tests');

rmSync(TO, { recursive: true, force: true });
mkdirSync(TO, { recursive: true });
const entryPoints = readdirSync(FROM).filter((f) => f.endsWith('.test.ts')).map((f) => join(FROM, f));
await build({ entryPoints, outdir: TO, bundle: true, platform: 'node', format: 'esm', target: 'node18',
              outExtension: { '.js': '.mjs' }, sourcemap: 'inline', logLevel: 'warning' });
const tests = readdirSync(TO).filter((f) => f.endsWith('.test.mjs')).map((f) => join(TO, f));
const r = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...tests], { stdio: 'inherit' });
process.exit(r.status ?? 1);
