/* Links, numbers, tiles and colours: one claim a test. */

import assert from 'node:assert/strict';
import test from 'node:test';
import { DEFAULT, formatHash, parseHash, State } from '../../../web/src/lib/hash';
import { between_ns, bounded, bytes, count, duration, share, signed_ratio, ticks } from '../../../web/src/lib/format';
import { codeOfExcess, codeOfRaw, decodeTile, excessOfCode, HEAD_BYTES, rawOfCode, SIDE, valueOfCode } from '../../../web/src/lib/tile';
import { cividis, diverging, excessLut, Rgb, roundSpan } from '../../../web/src/lib/palette';

const plain = (s: string) => s.replace(/\u202f/g, ' ');

test('a state survives its link', () => {
  const s: State = { view: 'heat', metric: 'wait', baseline: 'raw', agg: 'mean', contrast: 20, ranks: { lo: 0, hi: 3 },
                     steps: { lo: 10, hi: 200 }, rank: 2, step: 48, live: false, table: true };
  assert.deepEqual(parseHash(formatHash(s)), s);
  assert.equal(formatHash(parseHash(formatHash(s))), formatHash(s));
});

test('the link of the documentation means what it says', () => {
  const s = parseHash('#/heat?m=self&b=peers&r=0-3&s=0-200&sel=r2,s48');
  assert.deepEqual(s, { ...DEFAULT, view: 'heat', ranks: { lo: 0, hi: 3 }, steps: { lo: 0, hi: 200 }, rank: 2, step: 48 });
});

test('a hostile link is a default state, not an error', () => {
  for (const hash of ['', '#', '#/', '#/nowhere?x', '#/heat?m=<script>&b=%00&r=9-&s=-1-5&sel=r,s,rx,s-3&c=-5', `#/heat?r=${'9'.repeat(400)}-1`,
                      '#/heat?r=0-99999999999&s=a-b&sel=r65536', '#%%%', `#/heat?${'a=1&'.repeat(5000)}`])
    assert.deepEqual({ ...parseHash(hash), view: 'now' }, DEFAULT, hash.slice(0, 60));
});

test('a range that is given backwards is turned round', () => {
  assert.deepEqual(parseHash('#/heat?s=200-10').steps, { lo: 10, hi: 200 });
});

test('durations carry three digits and a unit', () => {
  const cases: [number, string][] = [[0, '0 ns'], [812, '812 ns'], [3100, '3.10 µs'], [68.24e6, '68.2 ms'], [612e6, '612 ms'],
    [999.7e3, '1.00 ms'], [1.84e9, '1.84 s'], [61.2e9, '61.2 s'], [150e9, '2 min 30 s'], [9000e9, '2 h 30 min'], [-2e6, '-2.00 ms']];
  for (const [ns, text] of cases)
    assert.equal(plain(duration(ns)), text);
});

test('what is not known is not zero', () => {
  for (const f of [duration, signed_ratio, share, count, bytes])
    for (const v of [null, undefined, NaN])
      assert.equal(f(v), 'unknown');
  assert.equal(between_ns(null, '5'), null);
});

test('a value and its bound stand together', () => {
  assert.equal(plain(bounded(68.24e6, 3100)), '68.2 ms ± 3.10 µs');
  assert.equal(plain(bounded(68.24e6, null)), '68.2 ms');
});

test('ratios are signed per cent, and nothing has no sign', () => {
  for (const [v, text] of [[0.124, '+12.4 %'], [-0.005, '−0.5 %'], [0, '0.0 %'], [-0.0001, '0.0 %'], [4, '+400 %']] as [number, string][])
    assert.equal(plain(signed_ratio(v)), text);
});

test('instants that no double can hold are subtracted exactly', () => {
  assert.equal(between_ns('1790000000000000001', '1790000000000000004'), 3);
  assert.equal(between_ns('1790000000000000004', '1790000000000000001'), -3);
});

test('counts and bytes read well', () => {
  assert.equal(count(1234567), '1,234,567');
  assert.equal(plain(bytes(4400128)), '4.20 MiB');
  assert.equal(plain(bytes(12)), '12 B');
});

test('ticks are round, inside, and few', () => {
  assert.deepEqual(ticks(0, 300, 6), [0, 50, 100, 150, 200, 250, 300]);
  for (const [lo, hi, n] of [[0, 0, 5], [38212, 48212, 8], [5, 9, 3], [0, 4294967293, 10]] as [number, number, number][]) {
    const t = ticks(lo, hi, n);
    assert.ok(t.length >= 1 && t.length <= n + 1 && t.every((v) => v >= lo && v <= hi && Number.isInteger(v)), `${lo} ${hi}: ${t}`);
  }
});

test('the excess scale has 0.25 % a code near zero and reaches -50 % .. +400 %', () => {
  assert.ok(Math.abs(excessOfCode(3) + 0.5) < 1e-6);
  assert.ok(Math.abs(excessOfCode(251) - 4) < 1e-6);
  const zero = codeOfExcess(0);
  assert.ok(Math.abs(excessOfCode(zero + 1) - excessOfCode(zero) - 0.0025) < 1e-4);
  assert.equal(codeOfExcess(-0.6), 2);
  assert.equal(codeOfExcess(4.2), 252);
  assert.equal(codeOfExcess(NaN), 254);
});

test('a code and its value belong together', () => {
  for (let c = 3; c <= 251; c++) {
    assert.equal(codeOfExcess(excessOfCode(c)), c);
    assert.equal(codeOfRaw(rawOfCode(c, 1e5, 1e10), 1e5, 1e10), c);
  }
  assert.equal(valueOfCode(0, true, 0, 0), null);
  assert.equal(valueOfCode(253, false, 1, 2), null);
});

test('a tile that is cut short, foreign or newer is refused with a sentence', () => {
  const whole = new ArrayBuffer(HEAD_BYTES + SIDE * SIDE), d = new DataView(whole);
  assert.throws(() => decodeTile(whole.slice(0, 100)), /has 65600 bytes, this one 100/);
  assert.throws(() => decodeTile(whole), /not a heatmap tile/);
  d.setUint32(0, 0x54484c53, true);
  d.setUint16(4, 2, true);
  assert.throws(() => decodeTile(whole), /version 2/);
  d.setUint16(4, 1, true);
  d.setUint16(6, 1, true);
  d.setUint32(16, 3, true);
  assert.deepEqual({ ...decodeTile(whole), codes: 0 }, { sealed: true, zs: 0, zr: 0, x: 3, y: 0, lo: 0, hi: 0, rev: 0, codes: 0 });
});

/* Viénot's 1999 matrices for protanopia and deuteranopia, Brettel-like for tritanopia, on linear light. */
const VISION: Record<string, number[][]> = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
  deuteranopia: [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
  tritanopia: [[1, 0.1462, -0.1462], [0, 0.8592, 0.1408], [0, 0.8592, 0.1408]],
  grey: [[0.2126, 0.7152, 0.0722], [0.2126, 0.7152, 0.0722], [0.2126, 0.7152, 0.0722]],
};

function lab(c: Rgb, m: number[][]): number[] {
  const lin = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  const s = m.map((row) => row.reduce((a, k, i) => a + k * lin[i]!, 0));
  const xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]].map((r) => r.reduce((a, k, i) => a + k * s[i]!, 0));
  const f = xyz.map((v, i) => { const t = v / [0.9505, 1, 1.089][i]!; return t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116; });
  return [116 * f[1]! - 16, 500 * (f[0]! - f[1]!), 200 * (f[1]! - f[2]!)];
}

function delta(a: Rgb, b: Rgb, m: number[][]): number {
  const p = lab(a, m), q = lab(b, m);
  return Math.hypot(p[0]! - q[0]!, p[1]! - q[1]!, p[2]! - q[2]!);
}

test('neighbours on each scale differ for any colour vision, and slow differs from fast', () => {
  for (const [name, m] of Object.entries(VISION)) {
    for (const dark of [false, true]) {
      for (let t = -1; t < 0.99; t += 0.25)
        assert.ok(delta(diverging(t, dark), diverging(t + 0.25, dark), m) > 3, `${name} dark=${dark} at ${t}`);
      if (name !== 'grey')
        assert.ok(delta(diverging(-1, dark), diverging(1, dark), m) > 25, `${name} dark=${dark}: ends`);
      assert.ok(delta(diverging(0, dark), diverging(1, dark), m) > 40, `${name} dark=${dark}: usual and slow`);
    }
    for (let t = 0; t < 0.99; t += 0.1)
      assert.ok(delta(cividis(t), cividis(t + 0.1), m) > 3, `${name} cividis at ${t}`);
  }
});

test('excess is drawn neutral at its centre and full at its span', () => {
  const lut = excessLut(0, 0.2, false), end = lut[252]!;
  assert.equal(lut[codeOfExcess(0.3)], end);
  assert.notEqual(lut[codeOfExcess(0.1)], end);
  const c = diverging(0, false), zero = lut[codeOfExcess(0)]!;
  assert.ok(Math.abs((zero & 255) - c[0]) <= 4);
});

test('a span is a round number not below what it must show', () => {
  for (const v of [0, 0.049, 0.051, 0.33, 0.9, 3])
    assert.ok(roundSpan(v) >= v);
  assert.equal(roundSpan(0.56), 0.75);
  assert.equal(roundSpan(0.01), 0.1);
});
