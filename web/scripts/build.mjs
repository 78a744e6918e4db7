/* build.mjs - web/dist, quick when nothing changed.
 *
 * Builds with Vite, writes a .gz beside each text file (the collector hands it
 * out as it is) and fails when the page grows over its budget or carries inline
 * code, which the page's own policy would block.
 */

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const DIST = join(ROOT, 'dist'), STAMP = join(ROOT, 'node_modules/.syncline-build');
const BUDGET = { js: 90 * 1024, css: 10 * 1024 }; /* bytes after gzip */

function files(dir) {
  return readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((e) => (e.isDirectory() ? files(join(dir, e.name)) : [join(dir, e.name)]));
}

function fingerprint() {
  const h = createHash('sha256');
  for (const f of [...files(join(ROOT, 'src')), ...files(join(ROOT, 'scripts')), ...['index.html', 'vite.config.ts',
                   'tsconfig.json', 'package.json', 'package-lock.json'].map((n) => join(ROOT, n))])
    h.update(relative(ROOT, f)).update('\0').update(readFileSync(f)).update('\0');
  return h.digest('hex');
}

function check() {
  const size = { js: 0, css: 0 };
  for (const f of files(DIST)) {
    const type = f.split('.').pop();
    if (type in size)
      size[type] += statSync(`${f}.gz`).size;
  }
  const html = readFileSync(join(DIST, 'index.html'), 'utf8'), wrong = [];
  for (const type of Object.keys(size))
    if (size[type] > BUDGET[type])
      wrong.push(`${type} is ${size[type]} bytes gzipped, the budget is ${BUDGET[type]}`);
  if (/<style|<script(?![^>]*\ssrc=)|\sstyle=|\son[a-z]+=/i.test(html))
    wrong.push('index.html has inline code or style: the page\'s policy blocks it');
  if (/(?:src|href)="(?:https?:|\/)/.test(html))
    wrong.push('index.html has an address that is not relative');
  if (wrong.length > 0)
    throw new Error(wrong.join('\n'));
  return size;
}

const print = fingerprint();
if (!process.argv.includes('--force') && existsSync(join(DIST, 'index.html')) && existsSync(STAMP) &&
    readFileSync(STAMP, 'utf8') === print) {
  console.log('web: up to date');
} else {
  process.chdir(ROOT);
  const { build } = await import('vite');
  await build({ root: ROOT, logLevel: 'warn' });
  for (const f of files(DIST))
    if (/\.(js|css|html|svg)$/.test(f))
      writeFileSync(`${f}.gz`, gzipSync(readFileSync(f), { level: 9 }));
  const size = check();
  writeFileSync(STAMP, print);
  console.log(`web: built, gzipped ${size.js} bytes of script and ${size.css} of style`);
}
