/* The compositor against a plain renderer that decides each pixel by itself. */

import assert from 'node:assert/strict';
import test from 'node:test';
import { edges, gather, Ink, paint, plan, Plan, quantile, histogram } from '../../../web/src/lib/compose';
import { SIDE, Tile } from '../../../web/src/lib/tile';
import { ink } from '../../../web/src/lib/palette';

/* xorshift: a failing view can be drawn again from the seed that is printed. */
function random(seed: number): (n: number) => number {
  let s = seed | 1;
  return (n) => {
    s ^= s << 13;
    s ^= s >>> 17;
    s ^= s << 5;
    return (s >>> 0) % n;
  };
}

const CODES = [0, 1, 2, 3, 40, 77, 78, 79, 120, 200, 251, 252, 253, 254, 255];

/* What the world holds at a cell of a level: a function of the place alone. */
function codeAt(zs: number, zr: number, x: number, y: number, plain: boolean): number {
  let h = Math.imul(x + 7 * zs + 1, 2654435761) ^ Math.imul(y + 13 * zr + 1, 2246822519);
  h ^= h >>> 15;
  return plain ? 3 + ((h >>> 0) % 249) : CODES[(h >>> 0) % CODES.length]!;
}

function makeTile(zs: number, zr: number, x: number, y: number, plain: boolean): Tile {
  const codes = new Uint8Array(SIDE * SIDE);
  for (let r = 0; r < SIDE; r++)
    for (let s = 0; s < SIDE; s++)
      codes[r * SIDE + s] = codeAt(zs, zr, x * SIDE + s, y * SIDE + r, plain);
  return { sealed: true, zs, zr, x, y, lo: 1e6, hi: 1e9, rev: 1, codes };
}

/* A pixel at a time, from the words of ux.md alone; shares no code with compose.ts. */
function reference(p: Plan, k: Ink, here: (x: number, y: number) => boolean, plain: boolean, px: number, py: number): number {
  let cx = 0, cy = 0;
  while (Math.floor(((cx + 1) * p.w) / p.nx) <= px)
    cx++;
  while (Math.floor(((cy + 1) * p.h) / p.ny) <= py)
    cy++;
  const left = Math.floor((cx * p.w) / p.nx), top = Math.floor((cy * p.h) / p.ny);
  const cw = Math.floor(((cx + 1) * p.w) / p.nx) - left, ch = Math.floor(((cy + 1) * p.h) / p.ny) - top;
  const x = p.x0 + cx, y = p.y0 + cy, lx = px - left, ly = py - top;
  const code = here(Math.floor(x / 256), Math.floor(y / 256)) ? codeAt(p.zs, p.zr, x, y, plain) : 0;

  if (cw >= 8 && lx === cw - 1)
    return k.paper;
  if (ch >= 8 && ly === ch - 1)
    return k.paper;
  if (code === 0 || code === 255)
    return k.paper;
  if (code === 1)
    return (px + py) % 6 < 2 ? k.hatch : k.hatch_paper;
  if (code === 253)
    return px % 3 === 1 && py % 3 === 1 ? k.dot : k.dot_paper;
  if (code === 254) {
    if (cw < 5 || ch < 5)
      return k.cross;
    /* On either diagonal of the cell, within half a pixel or so of its line. */
    const u = lx * (ch - 1), v = ly * (cw - 1), thick = Math.max(cw, ch);
    const down = Math.abs(u - v) <= thick, rise = Math.abs(u + v - (cw - 1) * (ch - 1)) <= thick;
    return down || rise ? k.cross : k.cross_paper;
  }
  if ((code === 2 || code === 252) && cw >= 6 && ch >= 6 && lx + ly < 4)
    return k.mark;
  return k.lut[code]!;
}

test('the compositor equals a plain renderer on every pixel of 1,000 random views', () => {
  const seed = Number(process.env.SEED ?? Date.now() & 0x7fffffff), rnd = random(seed);
  const lut = new Uint32Array(256).map((_, i) => (0xff000000 | (i * 66051)) >>> 0);
  const k = ink(lut, false), tiles = new Map<string, Tile>();

  for (let n = 0; n < 1000; n++) {
    const plain = rnd(3) === 0, max_z = rnd(2) ? 3000 : 60;
    const s0 = rnd(max_z), r0 = rnd(2) ? 0 : rnd(max_z);
    const steps = { lo: s0, hi: s0 + rnd(max_z) }, ranks = { lo: r0, hi: r0 + rnd(rnd(2) ? 8 : 700) };
    const p = plan(ranks, steps, 1 + rnd(180), 1 + rnd(90), 28, 28);
    /* Some tiles are not here: their cells are empty, their neighbours are not. */
    const hole = rnd(4) === 0;
    const here = (x: number, y: number) => !(hole && (x + y) % 3 === 1);
    const g = gather(p, (zs, zr, x, y) => {
      if (zs !== p.zs || !here(x, y))
        return here(x, y) ? undefined : null;
      const key = `${plain}/${zs}/${zr}/${x}/${y}`;
      if (!tiles.has(key))
        tiles.set(key, makeTile(zs, zr, x, y, plain));
      if (tiles.size > 400)
        tiles.delete(tiles.keys().next().value!);
      return tiles.get(key)!;
    }, true);
    const out = new Uint32Array(p.w * p.h).fill(0xdeadbeef);
    paint(g, p.w, p.h, k, out);
    for (let py = 0; py < p.h; py++)
      for (let px = 0; px < p.w; px++)
        if (out[py * p.w + px] !== reference(p, k, here, plain, px, py))
          assert.fail(`SEED=${seed}, view ${n} (${JSON.stringify({ ranks, steps, p })}): pixel ${px},${py}`);
  }
});

test('a plan shows every asked rank and step, in at most a pixel a cell', () => {
  const rnd = random(11);
  for (let n = 0; n < 2000; n++) {
    const lo = rnd(100000), hi = lo + rnd(1000000), p = plan({ lo: 0, hi: rnd(10000) }, { lo, hi }, 1 + rnd(2000), 1 + rnd(900), 28, 28);
    assert.ok(p.x0 * 2 ** p.zs <= lo && (p.x0 + p.nx) * 2 ** p.zs > hi);
    assert.ok(p.nx <= p.w && p.ny <= p.h && p.w <= p.nx * 28 && p.h <= p.ny * 28);
  }
});

test('cells share out all pixels', () => {
  const e = edges(7, 100);
  assert.equal(e[0], 0);
  assert.equal(e[7], 100);
  for (let i = 0; i < 7; i++)
    assert.ok(e[i + 1]! - e[i]! === 14 || e[i + 1]! - e[i]! === 15);
});

test('one slow cell stays visible when the picture is rolled up by max', () => {
  const p = plan({ lo: 0, hi: 3 }, { lo: 0, hi: 99999 }, 400, 100, 28, 28);
  assert.equal(p.zs, 8);
  const g = gather(p, (zs, _zr, x) => {
    const t = { ...makeTile(zs, 0, x, 0, true), codes: new Uint8Array(SIDE * SIDE).fill(77) };
    if (x === 1)
      t.codes[2 * SIDE + 10] = 251;
    return t;
  }, true);
  const lut = new Uint32Array(256).map((_, i) => i), out = new Uint32Array(p.w * p.h);
  paint(g, p.w, p.h, ink(lut, false), out);
  assert.ok(out.includes(251));
});

test('until a tile is here, a coarser one is shown', () => {
  const p = plan({ lo: 0, hi: 3 }, { lo: 0, hi: 299 }, 600, 100, 28, 28);
  assert.equal(p.zs, 0);
  const coarse = makeTile(2, 0, 0, 0, true);
  const g = gather(p, (zs) => (zs === 2 ? coarse : undefined), true);
  assert.equal(g.n_have, 0);
  assert.equal(g.n_wanted, 2);
  for (let x = 0; x < 300; x++)
    assert.equal(g.codes[x], coarse.codes[x >> 2]);
});

test('tiles that were coded between different ends are brought to one scale', () => {
  const p = plan({ lo: 0, hi: 0 }, { lo: 0, hi: 511 }, 600, 10, 28, 28);
  const flat = (lo: number, hi: number, code: number): Tile =>
    ({ ...makeTile(0, 0, 0, 0, true), lo, hi, codes: new Uint8Array(SIDE * SIDE).fill(code) });
  /* 10 ms in both: the middle of 1 ms .. 100 ms, and the top of 1 ms .. 10 ms. */
  const g = gather(p, (_zs, _zr, x) => (x === 0 ? flat(1e6, 1e8, 127) : flat(1e6, 1e7, 251)), false);
  assert.equal(g.lo, 1e6);
  assert.equal(g.hi, 1e8);
  assert.equal(g.codes[0], 127);
  assert.equal(g.codes[300], 127);
});

test('a quantile counts values only', () => {
  const codes = new Uint8Array([0, 0, 1, 253, 254, 10, 20, 30, 40]);
  assert.equal(quantile(histogram(codes), 0.5), 20);
  assert.equal(quantile(histogram(codes), 1), 40);
});
