/* palette.ts - colour tables.
 *
 * cividis for values, blue - neutral - orange for excess over the peers: both
 * are told apart with any kind of colour vision. No red against green.
 */

import { ABOVE, BELOW, FIRST, LAST, excessOfCode } from './tile';
import type { Ink } from './compose';

export type Rgb = readonly [number, number, number];

const CIVIDIS = ['00224e', '123570', '3b496c', '575d6d', '707173', '8a8678', 'a59c74', 'c3b369', 'e1cc55',
                 'fee838'].map(rgb);
/* From far below the peers to far above. In the dark the middle is dark: what
 * is usual recedes, what is not shines. */
const LIGHT = ['0b3a75', '2c73b8', '8dbbe0', 'fbfbf9', 'f5b878', 'd96d10', '8f3a00'].map(rgb);
const DARK = ['b5dcff', '58a9ee', '285f94', '23282f', '8d4a14', 'ea8328', 'ffd3a1'].map(rgb);

export function rgb(hex: string): Rgb {
  const n = parseInt(hex, 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

export function pack(c: Rgb): number {
  return ((255 << 24) | (c[2] << 16) | (c[1] << 8) | c[0]) >>> 0;
}

export function css(c: Rgb): string {
  return `rgb(${c[0]} ${c[1]} ${c[2]})`;
}

function along(stops: readonly Rgb[], t: number): Rgb {
  const at = Math.max(0, Math.min(1, t)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at)), f = at - i;
  const a = stops[i]!, b = stops[i + 1]!;
  return [0, 1, 2].map((k) => Math.round(a[k]! + (b[k]! - a[k]!) * f)) as unknown as Rgb;
}

export function cividis(t: number): Rgb {
  return along(CIVIDIS, t);
}

/* t from -1 to 1. */
export function diverging(t: number, dark: boolean): Rgb {
  return along(dark ? DARK : LIGHT, (t + 1) / 2);
}

/* centre: the excess that is drawn neutral; span: how far from it the scale ends. */
export function excessColour(excess: number, centre: number, span: number, dark: boolean): Rgb {
  return diverging((excess - centre) / span, dark);
}

export function excessLut(centre: number, span: number, dark: boolean): Uint32Array {
  const lut = new Uint32Array(256);
  for (let c = FIRST; c <= LAST; c++)
    lut[c] = pack(excessColour(excessOfCode(c), centre, span, dark));
  /* Out of range is drawn as the end of the range; the mark says that it is further. */
  lut[BELOW] = lut[FIRST]!;
  lut[ABOVE] = lut[LAST]!;
  return lut;
}

/* Values between the codes lo and hi; log scale, as the codes are. */
export function rawLut(lo: number, hi: number): Uint32Array {
  const lut = new Uint32Array(256);
  for (let c = FIRST; c <= LAST; c++)
    lut[c] = pack(cividis((c - lo) / Math.max(1, hi - lo)));
  lut[BELOW] = pack(cividis(0));
  lut[ABOVE] = pack(cividis(1));
  return lut;
}

export function ink(lut: Uint32Array, dark: boolean): Ink {
  const p = (hex: string) => pack(rgb(hex));
  return dark
    ? { lut, paper: p('14171b'), hatch: p('6f7882'), hatch_paper: p('1c2025'), dot: p('8b949e'),
        dot_paper: p('20252b'), cross: p('ff5cf0'), cross_paper: p('3a1236'), mark: p('000000') }
    : { lut, paper: p('e9ecef'), hatch: p('8a939c'), hatch_paper: p('f4f5f7'), dot: p('9aa3ac'),
        dot_paper: p('f2f3f5'), cross: p('c400b5'), cross_paper: p('fbd9f8'), mark: p('000000') };
}

/* The next round number up, in per cent: scales should not flicker with the data,
 * and the usual few per cent of noise should not look like something. */
export function roundSpan(excess: number): number {
  for (const p of [10, 20, 30, 50, 75, 100, 200])
    if (excess <= p / 100)
      return p / 100;
  return 4;
}
