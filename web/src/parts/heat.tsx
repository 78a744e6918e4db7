/* heat.tsx - the rank x step heatmap: two canvases, a cursor and a card.
 *
 * The lower canvas holds cells only, in device pixels; the upper one axes,
 * margins, cursor and marks. A screen reader gets one sentence and the selected
 * cell; the table beside it says the same as the picture.
 */

import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { paint } from '../lib/compose';
import { bounded, duration, plural, signed_ratio, ticks } from '../lib/format';
import { Cell, json } from '../net/api';
import {
  all_ranks, all_steps, findings, go, select, setSteps, shift, shown_ranks, shown_steps, state, tiles,
  tiles_changed, zoom,
} from '../state';
import { Scale } from './legend';
import { css, cividis, excessColour } from '../lib/palette';
import { dark } from '../theme';
import { cellAt, Frame, makeFrame, METRICS, ranksOf, stepsOf } from './frame';

export const frame = signal<Frame | null>(null); /* of the large picture: table and legend read it */

interface Box { left: number; top: number; right: number; bottom: number }
interface Hover { x: number; y: number; left: number; top: number }

const FULL: Box = { left: 46, top: 16, right: 104, bottom: 56 };
const MINI: Box = { left: 34, top: 14, right: 4, bottom: 20 };

function style(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function valueText(f: Frame, v: number): string {
  return Number.isNaN(v) ? 'unknown' : f.scale.peers ? signed_ratio(v) : duration(v);
}

function codeText(f: Frame, code: number): string {
  switch (code) {
  case 0: return 'no data';
  case 255: return 'loading';
  case 1: return 'missing: the rank was expected here';
  case 2: return `below ${valueText(f, f.values[2]!)}`;
  case 252: return `above ${valueText(f, f.values[252]!)}`;
  case 253: return 'within clock error: cannot say';
  case 254: return 'not finite';
  default: return `${valueText(f, f.values[code]!)}`;
  }
}

export function cellText(f: Frame, x: number, y: number): string {
  const r = ranksOf(f, y), s = stepsOf(f, x);
  const who = r.lo === r.hi ? `rank ${r.lo}` : `ranks ${r.lo} to ${r.hi}`;
  const when = s.lo === s.hi ? `step ${s.lo}` : `steps ${s.lo} to ${s.hi}`;
  return `${who}, ${when}: ${METRICS[f.metric] ?? f.metric} ${codeText(f, f.grid.codes[y * f.plan.nx + x]!)}`;
}

export function summary(f: Frame): string {
  let worst = -1;
  for (let y = 0; y < f.row_mean.length; y++)
    if (f.row_mean[y] === f.row_mean[y] && (worst < 0 || f.row_mean[y]! > f.row_mean[worst]!))
      worst = y;
  const what = `Heatmap of ${METRICS[f.metric] ?? f.metric}, ` +
    `${f.scale.peers ? 'excess over the median of the peers' : 'raw'}, ranks ${f.ranks.lo} to ${f.ranks.hi}, ` +
    `steps ${f.steps.lo} to ${f.steps.hi}.`;
  if (worst < 0)
    return `${what} No data in this range.`;
  const r = ranksOf(f, worst);
  return `${what} Highest mean: ${r.lo === r.hi ? `rank ${r.lo}` : `ranks ${r.lo} to ${r.hi}`}, ` +
    `${valueText(f, f.row_mean[worst]!)}.`;
}

function drawOver(c: HTMLCanvasElement, f: Frame, box: Box, w: number, h: number, dpr: number, mini: boolean,
                  hover: Hover | null, brush: [number, number, number, number] | null): void {
  const g = c.getContext('2d')!;
  const text = style('--text-2'), faint = style('--line'), strong = style('--text'), accent = style('--accent');
  const px = (v: number) => v / dpr;
  const pw = px(f.plan.w), ph = px(f.plan.h);

  c.width = Math.round(w * dpr);
  c.height = Math.round(h * dpr);
  g.scale(dpr, dpr);
  g.font = `11px ${style('--font')}`;
  g.textBaseline = 'middle';
  g.fillStyle = text;
  g.strokeStyle = faint;

  /* Ranks. Labels that do not fit are thinned out evenly, and the axis says so. */
  const row = ph / f.plan.ny, n_fit = Math.max(1, Math.floor(ph / 15));
  const every = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192].find((n) => f.plan.ny / n <= n_fit) ?? 16384;
  g.textAlign = 'right';
  for (let y = 0; y < f.plan.ny; y += every)
    g.fillText(`r${ranksOf(f, y).lo}`, box.left - 6, box.top + px(f.ye[y]!) + Math.max(6, row / 2));

  /* Steps. */
  const bottom = box.top + ph + (mini ? 0 : 34);
  g.textAlign = 'center';
  for (const t of ticks(f.steps.lo, f.steps.hi, Math.max(2, Math.floor(pw / 70)))) {
    const x = Math.floor(t / 2 ** f.plan.zs) - f.plan.x0;
    if (x < 0 || x >= f.plan.nx)
      continue;
    const at = box.left + px(f.xe[x]! + (f.xe[x + 1]! - f.xe[x]!) / 2);
    g.fillRect(Math.round(at * dpr) / dpr, bottom + 1, 1 / dpr, 4);
    const label = t.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ',');
    const half = g.measureText(label).width / 2;
    g.fillText(label, Math.max(box.left + half, Math.min(at, w - half)), bottom + 12);
  }

  if (!mini) {
    drawMargins(g, f, box, pw, ph, dpr, text, strong);
    g.textAlign = 'left';
    g.fillStyle = text;
    if (every > 1)
      g.fillText(`named: 1 in ${every * 2 ** f.plan.zr}`, box.left + pw + 10, bottom + 12);
    g.textAlign = 'right';
    g.fillText('step', box.left - 6, bottom + 12);
  }

  /* Where findings begin: a numbered flag above the step, a tick at the rank. */
  findings.value.slice(0, 9).forEach((v, i) => {
    if (v.first_step === null || v.first_step < f.steps.lo || v.first_step > f.steps.hi)
      return;
    const x = Math.floor(v.first_step / 2 ** f.plan.zs) - f.plan.x0;
    const at = box.left + px(f.xe[Math.max(0, Math.min(f.plan.nx - 1, x))]!);
    g.fillStyle = accent;
    g.beginPath();
    g.moveTo(at - 4, box.top - 7);
    g.lineTo(at + 4, box.top - 7);
    g.lineTo(at, box.top - 1);
    g.fill();
    g.textAlign = 'left';
    g.fillText(`${i + 1}`, at + 6, box.top - 7);
  });

  const outline = (x: number, y: number, colour: string, lw: number): void => {
    const l = box.left + px(f.xe[x]!), t = box.top + px(f.ye[y]!);
    const cw = Math.max(px(f.xe[x + 1]! - f.xe[x]!), 3), ch = Math.max(px(f.ye[y + 1]! - f.ye[y]!), 3);
    g.lineWidth = lw + 2;
    g.strokeStyle = style('--panel');
    g.strokeRect(l - 1, t - 1, cw + 2, ch + 2);
    g.lineWidth = lw;
    g.strokeStyle = colour;
    g.strokeRect(l - 1, t - 1, cw + 2, ch + 2);
  };
  const s = state.value;
  const sx = s.step === null ? -1 : Math.floor(s.step / 2 ** f.plan.zs) - f.plan.x0;
  const sy = s.rank === null ? -1 : Math.floor(s.rank / 2 ** f.plan.zr) - f.plan.y0;
  const in_x = sx >= 0 && sx < f.plan.nx, in_y = sy >= 0 && sy < f.plan.ny;
  g.fillStyle = strong;
  if (in_x)
    g.fillRect(box.left + px(f.xe[sx]! + (f.xe[sx + 1]! - f.xe[sx]!) / 2) - 1, bottom, 2, 5);
  if (in_y)
    g.fillRect(box.left - 4, box.top + px(f.ye[sy]! + (f.ye[sy + 1]! - f.ye[sy]!) / 2) - 1, 3, 2);
  if (in_x && in_y)
    outline(sx, sy, strong, 2);
  if (hover)
    outline(hover.x, hover.y, strong, 1);
  if (brush) {
    g.fillStyle = style('--brush');
    g.strokeStyle = accent;
    g.lineWidth = 1;
    const [ax, ay, bx, by] = brush;
    g.fillRect(Math.min(ax, bx), Math.min(ay, by), Math.abs(ax - bx), Math.abs(ay - by));
    g.strokeRect(Math.min(ax, bx) + 0.5, Math.min(ay, by) + 0.5, Math.abs(ax - bx), Math.abs(ay - by));
  }
}

/* Right: the mean of each rank. Bottom: the highest of each step. */
function drawMargins(g: CanvasRenderingContext2D, f: Frame, box: Box, pw: number, ph: number, dpr: number,
                     text: string, strong: string): void {
  const px = (v: number) => v / dpr, peers = f.scale.peers;
  const colour = (v: number) => css(peers ? excessColour(v, 0, f.scale.span, dark.value)
                                          : cividis(Math.log(v / f.scale.lo) / Math.log(f.scale.hi / f.scale.lo)));
  const left = box.left + pw + 10, width = 40;
  let most = 1e-9, worst = -1;
  f.row_mean.forEach((v, y) => {
    if (v !== v)
      return;
    most = Math.max(most, Math.abs(v));
    if (worst < 0 || v > f.row_mean[worst]!)
      worst = y;
  });
  most = Math.max(most, peers ? 0.02 : 0);
  const row = ph / f.plan.ny, named = row >= 13;
  g.textAlign = 'left';
  g.fillStyle = text;
  g.fillText('rank mean', left, box.top - 8);
  for (let y = 0; y < f.plan.ny; y++) {
    const v = f.row_mean[y]!, top = box.top + px(f.ye[y]!), ch = px(f.ye[y + 1]! - f.ye[y]!);
    if (v !== v)
      continue;
    const len = Math.max(1, (Math.abs(v) / most) * width), gap = ch > 6 ? Math.min(8, ch * 0.3) : 0;
    g.fillStyle = colour(v);
    g.fillRect(left, top + gap / 2, len, Math.max(1 / dpr, ch - gap));
    if (ch > 6 && len > 3) {
      g.strokeStyle = text;
      g.lineWidth = 0.5;
      g.strokeRect(left, top + gap / 2, len, ch - gap);
    }
    if (named || y === worst) {
      g.fillStyle = strong;
      g.fillText(valueText(f, v), left + width + 5, top + ch / 2);
    }
  }
  const base = box.top + ph + 32, tall = 24;
  let top_value = peers ? 0.02 : 1e-9;
  for (const v of f.column_max)
    if (v === v)
      top_value = Math.max(top_value, v);
  for (let x = 0; x < f.plan.nx; x++) {
    const v = f.column_max[x]!, l = box.left + px(f.xe[x]!), cw = px(f.xe[x + 1]! - f.xe[x]!);
    if (v !== v)
      continue;
    const t = Math.max(1, (Math.max(0, v) / top_value) * tall);
    g.fillStyle = colour(v);
    g.fillRect(l, base - t, Math.max(cw - (cw >= 8 ? 1 : 0), 1 / dpr), t);
  }
  g.fillStyle = text;
  g.fillRect(box.left, base, pw, 1 / dpr);
  if (f.scale.any)
    g.fillText(`max ${valueText(f, top_value)}`, left, base - 12);
}

export function Heat({ mini = false }: { mini?: boolean }) {
  const host = useRef<HTMLDivElement>(null), under = useRef<HTMLCanvasElement>(null),
        over = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [avail, setAvail] = useState(400);
  const [hover, setHover] = useState<Hover | null>(null);
  const [brush, setBrush] = useState<[number, number, number, number] | null>(null);
  const drag = useRef<{ x: number; y: number } | null>(null);
  const mine = useRef<Frame | null>(null);
  const box = mini ? MINI : FULL;
  const dpr = Math.min(2, window.devicePixelRatio || 1);

  useLayoutEffect(() => {
    const measure = (): void => {
      const r = host.current!.getBoundingClientRect();
      setWidth(Math.floor(r.width));
      setAvail(mini ? 190 : Math.max(160, window.innerHeight - (r.top + window.scrollY) - 190));
    };
    const o = new ResizeObserver(measure);
    o.observe(host.current!);
    window.addEventListener('resize', measure);
    measure();
    return () => {
      o.disconnect();
      window.removeEventListener('resize', measure);
    };
  }, [mini]);

  /* Everything the picture depends on, read here so that a change draws it anew. */
  const s = state.value, ranks = mini ? all_ranks.value : shown_ranks.value,
        steps = mini ? all_steps.value : shown_steps.value, is_dark = dark.value, rev = tiles_changed.value,
        seen = findings.value;
  const plot_w = Math.max(16, width - box.left - box.right), plot_h = Math.max(16, avail - box.top - box.bottom);

  const made = useMemo(() => {
    if (width === 0)
      return null;
    const shown = mini ? { ...s, metric: 'self', baseline: 'peers', agg: 'max', contrast: null } : s;
    return makeFrame(shown, ranks, steps, Math.floor(plot_w * dpr), Math.floor(plot_h * dpr), dpr, is_dark, tiles,
                     mini ? 22 : 28);
  }, [s, ranks.lo, ranks.hi, steps.lo, steps.hi, is_dark, rev, width, avail]);
  const f = made?.frame ?? null;
  const height = f ? box.top + Math.ceil(f.plan.h / dpr) + box.bottom : box.top + 60 + box.bottom;
  mine.current = f;

  useLayoutEffect(() => {
    if (!made || !f)
      return;
    tiles.want(made.keys);
    const c = under.current!;
    if (c.width !== f.plan.w || c.height !== f.plan.h) {
      c.width = f.plan.w;
      c.height = f.plan.h;
    }
    c.style.left = `${box.left}px`;
    c.style.top = `${box.top}px`;
    c.style.width = `${f.plan.w / dpr}px`;
    c.style.height = `${f.plan.h / dpr}px`;
    const image = new ImageData(f.plan.w, f.plan.h);
    paint(f.grid, f.plan.w, f.plan.h, f.ink, new Uint32Array(image.data.buffer));
    c.getContext('2d')!.putImageData(image, 0, 0);
    if (!mini)
      frame.value = f;
  }, [made]);

  useLayoutEffect(() => {
    if (f)
      drawOver(over.current!, f, box, width, height, dpr, mini, hover, brush);
  }, [made, hover, brush, seen]);

  const locate = (e: PointerEvent | MouseEvent): Hover | null => {
    const fr = mine.current, r = host.current!.getBoundingClientRect();
    if (!fr)
      return null;
    const left = e.clientX - r.left, top = e.clientY - r.top;
    const x = cellAt(fr.xe, Math.floor((left - box.left) * dpr)), y = cellAt(fr.ye, Math.floor((top - box.top) * dpr));
    return x < 0 || y < 0 ? null : { x, y, left, top };
  };
  const onMove = (e: PointerEvent): void => {
    const at = locate(e);
    setHover(at);
    if (drag.current && !mini) {
      const r = host.current!.getBoundingClientRect(), bx = e.clientX - r.left, by = e.clientY - r.top;
      if (brush || Math.abs(bx - drag.current.x) + Math.abs(by - drag.current.y) > 5)
        setBrush([drag.current.x, drag.current.y, bx, by]);
    }
  };
  const onDown = (e: PointerEvent): void => {
    const r = host.current!.getBoundingClientRect();
    if (e.button === 0 && locate(e))
      drag.current = { x: e.clientX - r.left, y: e.clientY - r.top };
  };
  const onUp = (e: PointerEvent): void => {
    const fr = mine.current, began = drag.current;
    drag.current = null;
    if (!fr || !began)
      return;
    if (brush) {
      const clampTo = (v: number, hi: number) => Math.max(0, Math.min(hi - 1, Math.floor(v * dpr)));
      const xs = [brush[0], brush[2]].map((v) => cellAt(fr.xe, clampTo(v - box.left, fr.plan.w))).sort((a, b) => a - b);
      const ys = [brush[1], brush[3]].map((v) => cellAt(fr.ye, clampTo(v - box.top, fr.plan.h))).sort((a, b) => a - b);
      setBrush(null);
      go({ ranks: { lo: ranksOf(fr, ys[0]!).lo, hi: Math.min(ranksOf(fr, ys[1]!).hi, all_ranks.value.hi) } });
      setSteps({ lo: Math.max(stepsOf(fr, xs[0]!).lo, all_steps.value.lo), hi: Math.min(stepsOf(fr, xs[1]!).hi, all_steps.value.hi) });
      return;
    }
    const at = locate(e);
    if (!at)
      return;
    const r = ranksOf(fr, at.y), st = stepsOf(fr, at.x);
    if (fr.plan.zs > 0 || fr.plan.zr > 0) {
      /* A rolled-up cell is several steps: go closer first. */
      const near = (v: { lo: number; hi: number }, all: { lo: number; hi: number }, n: number) =>
        shift({ lo: Math.round((v.lo + v.hi) / 2 - n / 2), hi: Math.round((v.lo + v.hi) / 2 + n / 2) - 1 }, 0, all);
      go({
        view: 'heat', rank: null, step: null,
        steps: near(st, all_steps.value, Math.min(256, all_steps.value.hi - all_steps.value.lo + 1)),
        ranks: fr.plan.zr > 0 ? near(r, all_ranks.value, Math.min(64, all_ranks.value.hi + 1)) : state.value.ranks,
      });
      return;
    }
    select(r.lo, st.lo);
    go({ view: 'step' });
  };

  useEffect(() => {
    const el = host.current!;
    const onWheel = (e: WheelEvent): void => {
      const at = locate(e), fr = mine.current;
      if (mini || !at || !fr)
        return;
      e.preventDefault();
      const place = (at.x + 0.5) / fr.plan.nx, r = shown_steps.value;
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        const by = Math.sign(e.deltaX || e.deltaY) * Math.max(1, Math.round((r.hi - r.lo) / 20));
        if (state.value.steps)
          setSteps(shift(r, by, all_steps.value));
      } else {
        setSteps(zoom(r, e.deltaY > 0 ? 1.25 : 0.8, place, all_steps.value, 8));
      }
    };
    el.addEventListener('wheel', onWheel, { passive: false });
    return () => el.removeEventListener('wheel', onWheel);
  }, [mini]);

  const here = hover && f && hover.x < f.plan.nx && hover.y < f.plan.ny && !brush ? hover : null;
  return (
    <>
    <div class={`heat${mini ? ' mini' : ''}`} ref={(el) => {
      host.current = el;
      if (el)
        el.style.height = `${height}px`;
    }} onPointerMove={onMove} onPointerLeave={() => setHover(null)} onPointerDown={onDown} onPointerUp={onUp}
      onDblClick={() => !mini && go({ ranks: null, steps: null })}>
      <canvas class="cells" ref={under} role="img" aria-label={f ? summary(f) : 'Heatmap, loading'} />
      <canvas class="over" ref={over} aria-hidden="true" />
      {here && f && <Card f={f} at={here} width={width} />}
      {f && f.grid.n_have === 0 && !tiles.problem && <p class="heat-note">Loading the picture…</p>}
    </div>
    {mini && f && <Scale f={f} />}
    </>
  );
}

const HOVER_MS = 60;

/* The value by colour at once, the exact ones when the pointer rests. */
function Card({ f, at, width }: { f: Frame; at: Hover; width: number }) {
  const [cell, setCell] = useState<{ key: string; v: Cell } | null>(null);
  const r = ranksOf(f, at.y), s = stepsOf(f, at.x);
  const single = r.lo === r.hi && s.lo === s.hi, key = `${r.lo}/${s.lo}`;

  useEffect(() => {
    if (!single)
      return;
    const abort = new AbortController();
    const t = setTimeout(() => {
      json<Cell>(`cell?step=${s.lo}&rank=${r.lo}`, { signal: abort.signal }).then((v) => setCell({ key, v }), () => undefined);
    }, HOVER_MS);
    return () => {
      clearTimeout(t);
      abort.abort();
    };
  }, [key, single]);

  const v = single && cell?.key === key ? cell.v : null;
  return (
    <div class="card" ref={(el) => {
      if (!el)
        return;
      const left = at.left + 16 + el.offsetWidth > width ? at.left - el.offsetWidth - 14 : at.left + 16;
      el.style.left = `${Math.max(0, left)}px`;
      el.style.top = `${at.top + 18}px`;
    }}>
      <b>{r.lo === r.hi ? `rank ${r.lo}` : `ranks ${r.lo}–${r.hi}`} · {s.lo === s.hi ? `step ${s.lo}` : `steps ${s.lo}–${s.hi}`}</b>
      <div>{METRICS[f.metric] ?? f.metric}{single ? '' : `, ${f.agg}`}: {codeText(f, f.grid.codes[at.y * f.plan.nx + at.x]!)}</div>
      {v && <dl>
        <dt>self</dt><dd>{duration(v.self_ns)} ({signed_ratio(v.excess_ratio)} vs peers)</dd>
        <dt>wait</dt><dd>{bounded(v.wait_ns, v.wait_err_ns)}</dd>
        <dt>step</dt><dd>{duration(v.dur_ns)}</dd>
        <dt>fwd · bwd · opt</dt><dd>{duration(v.fwd_ns)} · {duration(v.bwd_ns)} · {duration(v.opt_ns)}</dd>
        <dt>input</dt><dd>{duration(v.input_wait_ns)}</dd>
        {v.coverage !== null && v.coverage < 1 && <><dt>coverage</dt><dd>{(v.coverage * 100).toFixed(1)} %</dd></>}
      </dl>}
      {!single && <div class="dim">{plural((r.hi - r.lo + 1) * (s.hi - s.lo + 1), 'cell')}; click to go closer</div>}
    </div>
  );
}
