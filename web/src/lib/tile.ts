/* tile.ts - one block of 256 ranks x 256 steps of one-byte codes.
 *
 * The twin of collector/heat.h. A byte is for the eye only; exact values come
 * from api/v1/cell.
 */

export const SIDE = 256;
export const HEAD_BYTES = 64;

export const NO_DATA = 0;
export const MISSING = 1;
export const BELOW = 2;
export const FIRST = 3;
export const LAST = 251;
export const ABOVE = 252;
export const UNSURE = 253; /* within clock error */
export const NOT_FINITE = 254;
export const LOADING = 255; /* never on the wire: the tile is not here yet */

export interface Tile {
  sealed: boolean;
  zs: number;
  zr: number;
  x: number;
  y: number;
  lo: number; /* what FIRST and LAST stand for: ns, or a ratio */
  hi: number;
  rev: number;
  codes: Uint8Array; /* row after row: codes[rank * 256 + step] */
}

/* Throws a sentence when the bytes are not a whole tile. */
export function decodeTile(buf: ArrayBuffer): Tile {
  if (buf.byteLength !== HEAD_BYTES + SIDE * SIDE)
    throw new Error(`a heatmap tile has ${HEAD_BYTES + SIDE * SIDE} bytes, this one ${buf.byteLength}`);
  const d = new DataView(buf);
  if (d.getUint32(0, true) !== 0x54484c53)
    throw new Error('not a heatmap tile (no SLHT mark)');
  if (d.getUint16(4, true) !== 1)
    throw new Error(`heatmap tile version ${d.getUint16(4, true)}, this page reads 1: reload the page`);
  return {
    sealed: (d.getUint16(6, true) & 1) !== 0,
    zs: d.getUint8(11), zr: d.getUint8(12),
    x: d.getUint32(16, true), y: d.getUint32(20, true),
    lo: d.getFloat64(24, true), hi: d.getFloat64(32, true),
    rev: d.getUint32(40, true),
    codes: new Uint8Array(buf, HEAD_BYTES),
  };
}

/* The excess scale is asinh(ratio / A), A such that a code near 0 is 0.25 % wide
 * and the 248 steps reach from -50 % to +400 %. */
const EXCESS_A = solveExcessScale();
const EXCESS_K = EXCESS_A / 0.0025;
const EXCESS_LO = Math.asinh(-0.5 / EXCESS_A);

function solveExcessScale(): number {
  let lo = 0.001, hi = 1;
  for (let i = 0; i < 60; i++) {
    const a = (lo + hi) / 2;
    if ((a / 0.0025) * (Math.asinh(4 / a) + Math.asinh(0.5 / a)) < LAST - FIRST)
      lo = a;
    else
      hi = a;
  }
  return (lo + hi) / 2;
}

export function excessOfCode(code: number): number {
  return EXCESS_A * Math.sinh((code - FIRST) / EXCESS_K + EXCESS_LO);
}

export function codeOfExcess(ratio: number): number {
  if (!Number.isFinite(ratio))
    return NOT_FINITE;
  const c = FIRST + Math.round((Math.asinh(ratio / EXCESS_A) - EXCESS_LO) * EXCESS_K);
  return c < FIRST ? BELOW : c > LAST ? ABOVE : c;
}

export function rawOfCode(code: number, lo: number, hi: number): number {
  return lo * Math.pow(hi / lo, (code - FIRST) / (LAST - FIRST));
}

export function codeOfRaw(v: number, lo: number, hi: number): number {
  if (!Number.isFinite(v))
    return NOT_FINITE;
  if (v < lo)
    return BELOW;
  if (v > hi)
    return ABOVE;
  return FIRST + Math.round((Math.log(v / lo) / Math.log(hi / lo)) * (LAST - FIRST));
}

/* The value of a code for a person: null where there is none. */
export function valueOfCode(code: number, peers: boolean, lo: number, hi: number): number | null {
  if (code === BELOW || code === ABOVE)
    return peers ? (code === BELOW ? -0.5 : 4) : (code === BELOW ? lo : hi);
  if (code < FIRST || code > LAST)
    return null;
  return peers ? excessOfCode(code) : rawOfCode(code, lo, hi);
}
