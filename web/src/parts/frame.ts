/* frame.ts - one heatmap picture, ready to be drawn: what it shows and how.
 *
 * No DOM here: tiles, choices and a size in, codes, scale and words out.
 */

import { edges, gather, Grid, histogram, plan, Plan, quantile, Ink } from '../lib/compose';
import { ABOVE, BELOW, FIRST, LAST, valueOfCode } from '../lib/tile';
import { excessLut, ink, rawLut, roundSpan } from '../lib/palette';
import type { Range, State } from '../lib/hash';
import type { TileCache } from '../net/tiles';
import { plural } from '../lib/format';

export interface Scale {
  peers: boolean;
  any: boolean; /* is there a value at all */
  centre: number; span: number; /* peers: ratios */
  lo: number; hi: number; /* raw: ns at the ends of the colours */
}

export interface Frame {
  plan: Plan;
  grid: Grid;
  xe: Int32Array; ye: Int32Array; /* first pixel of each cell */
  values: Float64Array; /* of each code; NaN where there is none */
  row_mean: Float64Array; column_max: Float64Array;
  scale: Scale;
  ink: Ink;
  rollup: string;
  n_missing: number; n_unsure: number; n_not_finite: number;
  metric: string; baseline: string; agg: string;
  ranks: Range; steps: Range;
}

export const METRICS: Record<string, string> = {
  self: 'self time', wait: 'wait for the last rank', exposed: 'exposed communication', input: 'input wait',
  fwd: 'forward', bwd: 'backward', opt: 'optimizer', step: 'step time',
};

function tileKeys(p: Plan, prefix: string): string[] {
  const keys: string[] = [];
  for (let x = (p.x0 + p.nx - 1) >> 8; x >= p.x0 >> 8; x--)
    for (let y = p.y0 >> 8; y <= (p.y0 + p.ny - 1) >> 8; y++)
      keys.push(`${prefix}/${p.zs}-${p.zr}/${x}/${y}`);
  return keys;
}

export function makeFrame(s: State, ranks: Range, steps: Range, w: number, h: number, dpr: number, dark: boolean,
                          cache: TileCache, max_row_css: number): { frame: Frame; keys: string[] } {
  const p = plan(ranks, steps, w, h, Math.round(28 * dpr), Math.round(max_row_css * dpr));
  const peers = s.baseline === 'peers';
  const name = (agg: string) => `${s.metric}/${s.baseline}/${agg}`;
  const read = (agg: string) => gather(p, (zs, zr, x, y) => cache.peek(`${name(agg)}/${zs}-${zr}/${x}/${y}`), peers);
  const rolled = p.zs > 0 || p.zr > 0;
  const keys = tileKeys(p, name(s.agg));
  const grid = read(s.agg);
  /* The margin at the right is always the mean: a maximum only rises with zoom. */
  let mean = grid;
  if (rolled && s.agg !== 'mean') {
    keys.push(...tileKeys(p, name('mean')));
    const m = read('mean');
    if (m.n_have > 0)
      mean = m;
  }
  const values = valuesOf(peers, grid), mean_values = mean === grid ? values : valuesOf(peers, mean);
  const hist = histogram(grid.codes);
  /* Against peers a few outliers must not make all else pale: they are marked, not measured. */
  const p1 = quantile(hist, peers ? 0.05 : 0.01), p99 = quantile(hist, peers ? 0.95 : 0.995);
  const any = hist.subarray(BELOW, ABOVE + 1).some((n) => n > 0);
  let scale: Scale, colours: Uint32Array;
  if (peers) {
    /* Among many noisy cells the largest is large: centre on what is usual here. */
    const centre = any && rolled && s.agg === 'max' ? Math.max(0, values[quantile(hist, 0.5)]!) : 0;
    const far = any ? Math.max(Math.abs(values[p1]! - centre), Math.abs(values[p99]! - centre)) : 0;
    const span = s.contrast !== null ? s.contrast / 100 : Math.min(1, roundSpan(far));
    scale = { peers, any, centre, span, lo: 0, hi: 0 };
    colours = excessLut(centre, span, dark);
  } else {
    /* At least from v to 1.3 v: a few per cent of noise should not look like a finding. */
    const least = any ? ((LAST - FIRST) * Math.log(1.3)) / Math.log(grid.hi / grid.lo) : 1;
    const extra = Math.max(0, Math.ceil((least - (p99 - p1)) / 2));
    const lo = Math.max(FIRST, Math.min(LAST - 1, p1 - extra)), hi = Math.min(LAST, Math.max(p99 + extra, lo + 1));
    scale = { peers, any, centre: 0, span: 0, lo: values[lo]!, hi: values[hi]! };
    colours = rawLut(lo, hi);
  }

  const row_mean = new Float64Array(p.ny), column_max = new Float64Array(p.nx).fill(NaN);
  for (let y = 0; y < p.ny; y++) {
    let sum = 0, n = 0;
    for (let x = 0; x < p.nx; x++) {
      const m = mean_values[mean.codes[y * p.nx + x]!]!, v = values[grid.codes[y * p.nx + x]!]!;
      if (m === m) {
        sum += m;
        n++;
      }
      if (v === v && !(column_max[x]! >= v))
        column_max[x] = v;
    }
    row_mean[y] = n > 0 ? sum / n : NaN;
  }
  const rollup = `1 cell = ${plural(2 ** p.zr, 'rank')} × ${plural(2 ** p.zs, 'step')}` +
    (rolled ? `, showing ${s.agg}` : '');
  return {
    keys,
    frame: {
      plan: p, grid, xe: edges(p.nx, p.w), ye: edges(p.ny, p.h), values, row_mean, column_max, scale,
      ink: ink(colours, dark), rollup, n_missing: hist[1]!, n_unsure: hist[253]!, n_not_finite: hist[254]!,
      metric: s.metric, baseline: s.baseline, agg: s.agg, ranks, steps,
    },
  };
}

function valuesOf(peers: boolean, g: Grid): Float64Array {
  const v = new Float64Array(256);
  for (let c = 0; c < 256; c++)
    v[c] = valueOfCode(c, peers, g.lo, g.hi) ?? NaN;
  return v;
}

/* Which cell a pixel belongs to: edges are sorted. */
export function cellAt(e: Int32Array, px: number): number {
  let lo = 0, hi = e.length - 2;
  if (px < 0 || hi < 0 || px >= e[hi + 1]!)
    return -1;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (e[mid]! <= px)
      lo = mid;
    else
      hi = mid - 1;
  }
  return lo;
}

export function stepsOf(f: Frame, x: number): Range {
  const n = 2 ** f.plan.zs, lo = (f.plan.x0 + x) * n;
  return { lo, hi: lo + n - 1 };
}

export function ranksOf(f: Frame, y: number): Range {
  const n = 2 ** f.plan.zr, lo = (f.plan.y0 + y) * n;
  return { lo, hi: lo + n - 1 };
}
