/* compose.ts - from tiles to pixels, on the CPU, without the DOM.
 *
 *   plan    which cells a picture of this size shows, and how large they are
 *   gather  the codes of these cells out of tiles
 *   paint   codes through a colour table into pixels
 *
 * The steps are separate because a new palette repeats only the last one, and
 * because each is small enough to check. reference.ts in the tests draws the
 * same picture a pixel at a time; both must agree on every pixel.
 */

import { ABOVE, BELOW, FIRST, LAST, LOADING, MISSING, NO_DATA, NOT_FINITE, SIDE, Tile, UNSURE } from './tile';
import type { Range } from './hash';

/* Everything is in whole cells and whole pixels. Cell i of the picture is the
 * cell x0 + i of level zs: steps (x0 + i) << zs and the 2^zs - 1 after it. */
export interface Plan {
  zs: number; zr: number;
  x0: number; nx: number;
  y0: number; ny: number;
  w: number; h: number; /* pixels */
}

const MAX_ZOOM = 24;

function fit(r: Range, n_pixels: number): { z: number; at: number; n: number } {
  for (let z = 0; ; z++) {
    const at = Math.floor(r.lo / 2 ** z), n = Math.floor(r.hi / 2 ** z) - at + 1;
    if (n <= n_pixels || z === MAX_ZOOM)
      return { z, at, n: Math.min(n, n_pixels) };
  }
}

/* A cell is never wider than max_cell_w nor taller than max_cell_h. */
export function plan(ranks: Range, steps: Range, w: number, h: number, max_cell_w: number,
                     max_cell_h: number): Plan {
  const s = fit(steps, Math.max(1, w)), r = fit(ranks, Math.max(1, h));
  return {
    zs: s.z, zr: r.z, x0: s.at, nx: s.n, y0: r.at, ny: r.n,
    w: Math.max(1, Math.min(w, s.n * max_cell_w)), h: Math.max(1, Math.min(h, r.n * max_cell_h)),
  };
}

/* First pixel of each cell, and the end: n + 1 whole numbers. */
export function edges(n: number, n_pixels: number): Int32Array {
  const e = new Int32Array(n + 1);
  for (let i = 0; i <= n; i++)
    e[i] = Math.floor((i * n_pixels) / n);
  return e;
}

export interface Grid {
  nx: number; ny: number;
  codes: Uint8Array;
  lo: number; hi: number; /* scale of all codes; NaN when no tile is here yet */
  n_wanted: number; n_have: number; /* tiles */
}

export type TileSource = (zs: number, zr: number, x: number, y: number) => Tile | null | undefined;
/* null: known to be empty. undefined: not here (yet). */

export function gather(p: Plan, source: TileSource, peers: boolean): Grid {
  const g: Grid = { nx: p.nx, ny: p.ny, codes: new Uint8Array(p.nx * p.ny).fill(LOADING), lo: NaN, hi: NaN,
                    n_wanted: 0, n_have: 0 };
  const tx0 = Math.floor(p.x0 / SIDE), tx1 = Math.floor((p.x0 + p.nx - 1) / SIDE);
  const ty0 = Math.floor(p.y0 / SIDE), ty1 = Math.floor((p.y0 + p.ny - 1) / SIDE);
  const here: { tile: Tile | null; tx: number; ty: number; dz: number }[] = [];

  for (let ty = ty0; ty <= ty1; ty++) {
    for (let tx = tx0; tx <= tx1; tx++) {
      g.n_wanted++;
      let t = source(p.zs, p.zr, tx, ty), dz = 0;
      if (t !== undefined)
        g.n_have++;
      /* Until the right tile is here, a coarser one of the same ranks will do. */
      while (t === undefined && dz < 6 && p.zs + dz < MAX_ZOOM) {
        dz++;
        t = source(p.zs + dz, p.zr, Math.floor(tx / 2 ** dz), ty);
      }
      if (t !== undefined)
        here.push({ tile: t, tx, ty, dz });
      if (t) {
        if (!(g.lo <= t.lo))
          g.lo = t.lo;
        if (!(g.hi >= t.hi))
          g.hi = t.hi;
      }
    }
  }
  for (const { tile, tx, ty, dz } of here) {
    const map = peers || !tile || (tile.lo === g.lo && tile.hi === g.hi) ? null : rescale(tile, g.lo, g.hi);
    const xa = Math.max(p.x0, tx * SIDE), xb = Math.min(p.x0 + p.nx, (tx + 1) * SIDE);
    const ya = Math.max(p.y0, ty * SIDE), yb = Math.min(p.y0 + p.ny, (ty + 1) * SIDE);
    for (let y = ya; y < yb; y++) {
      const from = (y - ty * SIDE) * SIDE, to = (y - p.y0) * p.nx - p.x0;
      if (!tile) {
        g.codes.fill(NO_DATA, to + xa, to + xb);
        continue;
      }
      if (dz === 0 && !map) {
        g.codes.set(tile.codes.subarray(from + xa - tx * SIDE, from + xb - tx * SIDE), to + xa);
        continue;
      }
      for (let x = xa; x < xb; x++) {
        const c = tile.codes[from + (Math.floor(x / 2 ** dz) & (SIDE - 1))]!;
        g.codes[to + x] = map ? map[c]! : c;
      }
    }
  }
  return g;
}

/* Tiles may have been coded between different ends; one picture has one scale. */
function rescale(t: Tile, lo: number, hi: number): Uint8Array {
  const map = new Uint8Array(256);
  for (let c = 0; c < 256; c++) {
    map[c] = c;
    if (c >= FIRST && c <= LAST) {
      const v = Math.log(t.lo) + (Math.log(t.hi / t.lo) * (c - FIRST)) / (LAST - FIRST);
      const n = FIRST + Math.round(((v - Math.log(lo)) / Math.log(hi / lo)) * (LAST - FIRST));
      map[c] = Math.max(FIRST, Math.min(LAST, n));
    }
  }
  return map;
}

/* Colours as the canvas keeps them in memory on a little-endian machine: 0xAABBGGRR. */
export interface Ink {
  lut: Uint32Array; /* 256 */
  paper: number; /* no data, and the gaps between large cells */
  hatch: number; hatch_paper: number; /* expected but missing */
  dot: number; dot_paper: number; /* within clock error */
  cross: number; cross_paper: number; /* not finite */
  mark: number; /* corner of a cell that is out of range */
}

const GAP_FROM = 8; /* cells of this many pixels or more stand apart by one */
const MARK_FROM = 6;
const MARK_SIZE = 4;

/* What one pixel shows. lx, ly: place inside a cell of cw x ch pixels. */
export function pixel(ink: Ink, code: number, px: number, py: number, lx: number, ly: number,
                      cw: number, ch: number): number {
  if ((cw >= GAP_FROM && lx === cw - 1) || (ch >= GAP_FROM && ly === ch - 1))
    return ink.paper;
  switch (code) {
  case NO_DATA:
  case LOADING:
    return ink.paper;
  case MISSING:
    return (px + py) % 6 < 2 ? ink.hatch : ink.hatch_paper;
  case UNSURE:
    return px % 3 === 1 && py % 3 === 1 ? ink.dot : ink.dot_paper;
  case NOT_FINITE: {
    if (cw < 5 || ch < 5)
      return ink.cross;
    const a = lx * (ch - 1), b = ly * (cw - 1), full = (cw - 1) * (ch - 1);
    const wide = Math.max(cw, ch);
    return Math.abs(a - b) <= wide || Math.abs(a + b - full) <= wide ? ink.cross : ink.cross_paper;
  }
  case BELOW:
  case ABOVE:
    if (cw >= MARK_FROM && ch >= MARK_FROM && lx + ly < MARK_SIZE)
      return ink.mark;
    return ink.lut[code]!;
  default:
    return ink.lut[code]!;
  }
}

/* Codes whose pixels differ inside a cell. */
const PATTERN = new Uint8Array(256);
for (const code of [MISSING, UNSURE, NOT_FINITE, BELOW, ABOVE])
  PATTERN[code] = 1;

export function paint(g: Grid, w: number, h: number, ink: Ink, out: Uint32Array): void {
  const { nx, ny, codes } = g, xe = edges(nx, w), ye = edges(ny, h);
  const colour = ink.lut.slice();
  colour[NO_DATA] = colour[LOADING] = ink.paper;

  for (let y = 0; y < ny; y++) {
    const at = y * nx, top = ye[y]!, ch = ye[y + 1]! - top, first = top * w;
    let patterns = 0;

    for (let i = at; i < at + nx; i++)
      patterns |= PATTERN[codes[i]!]!;
    if (patterns) {
      for (let ly = 0; ly < ch; ly++)
        paintLine(codes, at, nx, xe, first + ly * w, top + ly, ly, ch, ink, colour, out);
    } else {
      /* A row of plain cells is one line of pixels, repeated. */
      if (nx === w)
        for (let x = 0; x < nx; x++)
          out[first + x] = colour[codes[at + x]!]!;
      else
        paintLine(codes, at, nx, xe, first, top, 0, ch, ink, colour, out);
      for (let ly = 1; ly < ch; ly++)
        out.copyWithin(first + ly * w, first, first + w);
    }
    if (ch >= GAP_FROM)
      out.fill(ink.paper, first + (ch - 1) * w, first + ch * w);
  }
}

function paintLine(codes: Uint8Array, at: number, nx: number, xe: Int32Array, line: number, py: number, ly: number,
                   ch: number, ink: Ink, colour: Uint32Array, out: Uint32Array): void {
  for (let x = 0; x < nx; x++) {
    const code = codes[at + x]!, from = xe[x]!, to = xe[x + 1]!, cw = to - from;
    if (PATTERN[code]) {
      for (let px = from; px < to; px++)
        out[line + px] = pixel(ink, code, px, py, px - from, ly, cw, ch);
      continue;
    }
    const c = colour[code]!;
    for (let px = from; px < to; px++)
      out[line + px] = c;
    if (cw >= GAP_FROM)
      out[line + to - 1] = ink.paper;
  }
}

export function histogram(codes: Uint8Array): Uint32Array {
  const n = new Uint32Array(256);
  for (let i = 0; i < codes.length; i++)
    n[codes[i]!]!++;
  return n;
}

/* The code below which this share of the values lies; FIRST when there are none. */
export function quantile(hist: Uint32Array, q: number): number {
  let total = 0, seen = 0;
  for (let c = BELOW; c <= ABOVE; c++)
    total += hist[c]!;
  for (let c = BELOW; c <= ABOVE; c++) {
    seen += hist[c]!;
    if (total > 0 && seen >= q * total)
      return c;
  }
  return FIRST;
}
