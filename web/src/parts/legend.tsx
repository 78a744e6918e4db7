/* legend.tsx - the colour scale, always with numbers, and every sign that is not a colour. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import { cividis, excessColour, pack } from '../lib/palette';
import { pixel } from '../lib/compose';
import { count, duration, signed_ratio } from '../lib/format';
import { dark } from '../theme';
import type { Frame } from './frame';

const W = 220, H = 12, SIGN = 14;

/* The colours and what they stand for. */
export function Scale({ f }: { f: Frame }) {
  const bar = useRef<HTMLCanvasElement>(null);
  const s = f.scale;

  useLayoutEffect(() => {
    const c = bar.current!, image = new ImageData(W, H), px = new Uint32Array(image.data.buffer);
    for (let x = 0; x < W; x++) {
      const t = x / (W - 1);
      px[x] = s.peers ? pack(excessColour(s.centre + (2 * t - 1) * s.span, s.centre, s.span, dark.value)) : pack(cividis(t));
    }
    for (let y = 1; y < H; y++)
      px.copyWithin(y * W, 0, W);
    c.getContext('2d')!.putImageData(image, 0, 0);
  }, [s.peers, s.centre, s.span, dark.value]);

  const at = (t: number) => s.peers ? signed_ratio(s.centre + (2 * t - 1) * s.span) : duration(s.lo * Math.pow(s.hi / s.lo, t));
  return (
    <figure class="scale">
      <canvas ref={bar} width={W} height={H} aria-hidden="true" />
      <figcaption>{s.any ? <><span>≤ {at(0)}</span><span>{at(0.5)}</span><span>≥ {at(1)}</span></> : <span>no values here yet</span>}</figcaption>
    </figure>
  );
}

export function Legend({ f }: { f: Frame }) {
  const s = f.scale;
  return (
    <div class="legend">
      <Scale f={f} />
      <div class="signs">
        {s.peers && s.centre > 0.001 && <span class="dim">neutral = {signed_ratio(s.centre)}, the median of what is shown</span>}
        <Sign f={f} code={0} text="no data" />
        <Sign f={f} code={1} text={`missing${f.n_missing ? `: ${count(f.n_missing)}` : ''}`} />
        <Sign f={f} code={253} text={`within clock error${f.n_unsure ? `: ${count(f.n_unsure)}` : ''}`} />
        <Sign f={f} code={252} text="out of range" />
        <Sign f={f} code={254} text={`not finite${f.n_not_finite ? `: ${count(f.n_not_finite)}` : ''}`} />
      </div>
    </div>
  );
}

function Sign({ f, code, text }: { f: Frame; code: number; text: string }) {
  const ref = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const image = new ImageData(SIGN, SIGN), px = new Uint32Array(image.data.buffer);
    for (let y = 0; y < SIGN; y++)
      for (let x = 0; x < SIGN; x++)
        px[y * SIGN + x] = pixel(f.ink, code, x, y, x, y, SIGN + 1, SIGN + 1);
    ref.current!.getContext('2d')!.putImageData(image, 0, 0);
  }, [f, code]);
  return <span class="sign"><canvas ref={ref} width={SIGN} height={SIGN} aria-hidden="true" />{text}</span>;
}
