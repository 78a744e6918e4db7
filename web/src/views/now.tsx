/* now.tsx - the first page: what is wrong, why, how sure, what it costs, what next.
 * When nothing is, it says so with the numbers that make it believable.
 */

import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { all_ranks, all_steps, boot, findings, linkTo, step_news } from '../state';
import { placeOf } from '../keys';
import { bounded, count, duration, plural, share, signed_ratio } from '../lib/format';
import { Finding, json, StepRow } from '../net/api';
import { Heat } from '../parts/heat';

const steps = signal<StepRow[]>([]);
const STEPS_MS = 1000;
let steps_timer: ReturnType<typeof setTimeout> | undefined;

/* However often steps come, the curve is asked for once a second. */
function stepsSoon(delay_ms: number): void {
  steps_timer ??= setTimeout(() => {
    json<{ steps: StepRow[] }>('steps').then((r) => { steps.value = r.steps; }, () => undefined)
      .finally(() => { steps_timer = undefined; });
  }, delay_ms);
}

const CONFIDENCE: Record<string, string> = {
  certain: 'Certain', likely: 'Likely', too_close: 'Too close to call', insufficient: 'Not enough data',
};
const SEVERITY: Record<string, string> = { stuck: 'STUCK', wrong: 'WRONG', slow: 'SLOW', notice: 'NOTICE' };

/* What a person does next, by class of finding. */
function next(v: Finding): string {
  const rank = v.culprit?.ranks?.[0], host = v.culprit?.host;
  const where = rank !== undefined ? `rank ${rank}${host ? ` (${host})` : ''}` : host ?? 'the culprit';
  if (v.confidence === 'too_close')
    return 'Let it run longer, or improve the clocks: the difference is smaller than what can be measured.';
  if (v.confidence === 'insufficient')
    return 'See which ranks are silent or dropped events; the header counts them.';
  if (v.class.startsWith('slow.fixed_rank'))
    return `Look at ${where}: clock speed, heat, other processes on the host, uneven input. Open the step to see which phase grew.`;
  if (v.class === 'clock.contradiction')
    return 'Look whether ranks make different calls there (one skips a collective or makes one more), and at syncline clocks for a host whose clock was set.';
  if (v.class === 'clock.offset')
    return `See to the time service (NTP, PTP) of ${host ?? 'the host'}. Until then line up logs by syncline's times.`;
  if (v.class.startsWith('slow.'))
    return `Open the step and compare the phases of ${where} with its peers.`;
  if (v.class.startsWith('mismatch.') || v.class.startsWith('hang.'))
    return `Compare the calls that ${where} made with those of the others in this step.`;
  return 'Open the first step and follow the evidence.';
}

function sure(v: Finding): string {
  const word = CONFIDENCE[v.confidence] ?? v.confidence;
  if (v.margin_ns === null || v.margin_ns === undefined)
    return word;
  if (v.margin_ns === 0 && v.error_ns === 0) // sequences, records and sizes decided
    return `${word}: no times are compared in it`;
  const kind = v.error_kind === 'hard' ? ', a hard bound' : v.error_kind === 'none' ? ', no clock involved' : '';
  return `${word}: margin ${bounded(v.margin_ns, v.error_ns)}${v.error_ns === null ? '' : kind}`;
}

function FindingCard({ v, i }: { v: Finding; i: number }) {
  const p = placeOf(v);
  return (
    <li class={`finding ${v.severity}`} id={`finding-${i}`} tabIndex={-1}>
      <p class="head"><span class="n">{i + 1}</span><span class="sev">{SEVERITY[v.severity] ?? v.severity}</span>
        <span class="class">{v.class}</span><span class="grow" />
        {v.cost_ratio !== null && v.cost_ratio !== undefined && <span class="cost">{signed_ratio(v.cost_ratio)} step time</span>}</p>
      <h2>{v.sentence}</h2>
      <dl>
        <dt>how sure</dt><dd>{sure(v)}</dd>
        {v.cost_ratio !== null && v.cost_ratio !== undefined && <><dt>cost</dt><dd>each step takes {share(v.cost_ratio)} longer than without it</dd></>}
        {v.first_step !== null && <><dt>since</dt><dd>step {count(v.first_step)}{v.last_step !== null && v.last_step !== v.first_step ? `, last seen in step ${count(v.last_step)}` : ''}</dd></>}
        {v.culprit?.detail && <><dt>where</dt><dd>{v.culprit.detail}</dd></>}
        <dt>next</dt><dd>{next(v)}</dd>
      </dl>
      <p class="links">
        <a href={linkTo({ ...p, view: 'heat', metric: 'self', baseline: 'peers' })}>Show on the heatmap</a>
        {p.step !== null && <a href={linkTo({ ...p, view: 'step' })}>Open step {count(p.step)}</a>}
      </p>
    </li>
  );
}

function median(sorted: number[], q = 0.5): number | null {
  return sorted.length === 0 ? null : sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!;
}

/* A healthy run is a sentence with numbers, not an empty box. */
function Healthy() {
  const b = boot.value!, c = b.coverage, durs = steps.value.map((s) => s.dur_ns).filter((d): d is number => d !== null).sort((x, y) => x - y);
  const lost = c.events_lost + c.drops;
  const n = all_steps.value.hi - all_steps.value.lo + 1;
  return (
    <div class="healthy">
      <h2>Nothing found in {plural(n, 'step')} of {plural(all_ranks.value.hi + 1, 'rank')}.</h2>
      <p>{durs.length > 0 && <>A step takes {duration(median(durs))} at the median and {duration(median(durs, 0.99))} at the 99th percentile. </>}
        {count(c.events)} events arrived{lost === 0 ? ', none was lost' : <>; <b>{count(lost)} were lost</b>, so something may hide there</>}.
        {b.clock.error_ns !== null && <> {b.clock.hosts === 1 && b.clock.error_ns === 0 ? 'All ranks share one host’s clock.' : <>{b.clock.hosts === 1 ? 'The host’s clock is' : `The clocks of ${count(b.clock.hosts)} hosts are`} known to ±{duration(b.clock.error_ns)}.</>}</>}
        {c.collectives_hidden && <> <b>The gradient collectives of this job are hidden from the probe (NCCL): a rank that waits cannot be told from one that computes, so no slow rank can be named.</b></>}
        {c.ranks_expected !== null && c.ranks_expected > c.ranks_seen && <> <b>{count(c.ranks_expected - c.ranks_seen)} of {count(c.ranks_expected)} ranks have not reported.</b></>}</p>
    </div>
  );
}

export function Now() {
  const list = findings.value, b = boot.value!, news = step_news.value;
  const strong = list.filter((v) => v.severity !== 'notice' && v.confidence !== 'too_close' && v.confidence !== 'insufficient');
  const weak = list.filter((v) => !strong.includes(v));

  useEffect(() => stepsSoon(steps.value.length > 0 ? STEPS_MS : 0), [news, b.run.run_id]);

  return (
    <div class="now">
      <section class="findings" aria-labelledby="findings-title">
        <h1 id="findings-title">{strong.length === 0 ? 'No findings' : plural(strong.length, 'finding')}</h1>
        {strong.length === 0 && <Healthy />}
        {strong.length > 0 && <ol>{strong.map((v) => <FindingCard key={v.id} v={v} i={list.indexOf(v)} />)}</ol>}
        {weak.length > 0 && <>
          <h2 class="sub">Too close to call, or only worth knowing</h2>
          <ol>{weak.map((v) => <FindingCard key={v.id} v={v} i={list.indexOf(v)} />)}</ol>
        </>}
      </section>
      <div class="side">
        <section class="panel">
          <h2><a href={linkTo({ view: 'heat', metric: 'self', baseline: 'peers', ranks: null, steps: null })}>Self time, excess over peers</a></h2>
          <Heat mini />
        </section>
        <section class="panel">
          <h2>Step time</h2>
          <StepTimes />
        </section>
        <section class="panel">
          <h2>Data</h2>
          <dl class="data">
            <div><dt>events</dt><dd>{count(b.coverage.events)}</dd></div>
            <div><dt>lost</dt><dd>{count(b.coverage.events_lost)}</dd></div>
            <div><dt>dropped at source</dt><dd>{count(b.coverage.drops)}</dd></div>
            <div><dt>agents</dt><dd>{count(b.live.n_agents)}</dd></div>
            <div><dt>hosts</dt><dd>{count(b.clock.hosts)}{b.clock.unaligned > 0 ? `, ${count(b.clock.unaligned)} not aligned` : ''}</dd></div>
          </dl>
        </section>
      </div>
    </div>
  );
}

const TALL = 96, LEFT = 58, BASE = 16;

function StepTimes() {
  const host = useRef<HTMLDivElement>(null);
  const [w, setW] = useState(0);
  useLayoutEffect(() => {
    const o = new ResizeObserver(() => setW(Math.floor(host.current!.clientWidth)));
    o.observe(host.current!);
    return () => o.disconnect();
  }, []);
  const rows = steps.value.filter((s) => s.dur_ns !== null);
  const durs = rows.map((s) => s.dur_ns!).sort((a, b) => a - b);
  if (rows.length < 2)
    return <div ref={host}><p class="dim">No finished steps yet.</p></div>;
  const top = median(durs, 0.995)! * 1.1, lo = rows[0]!.step, hi = rows[rows.length - 1]!.step;
  const x = (s: number) => LEFT + ((s - lo) / Math.max(1, hi - lo)) * (w - LEFT - 6);
  const y = (d: number) => Math.max(2, TALL - BASE - (d / top) * (TALL - BASE - 4));
  /* At most one line a pixel: the highest step there, and the lowest. */
  const high: string[] = [], low: string[] = [];
  const bins = Math.max(1, Math.min(rows.length, w - LEFT));
  for (let i = 0; i < bins; i++) {
    const part = rows.slice(Math.floor((i * rows.length) / bins), Math.floor(((i + 1) * rows.length) / bins));
    if (part.length === 0)
      continue;
    const at = x(part[0]!.step).toFixed(1), ds = part.map((p) => p.dur_ns!);
    high.push(`${at},${y(Math.max(...ds)).toFixed(1)}`);
    low.push(`${at},${y(Math.min(...ds)).toFixed(1)}`);
  }
  const mid = median(durs)!;
  return (
    <div ref={host}>
      {w > 0 && <svg class="times" width={w} height={TALL} role="img"
        aria-label={`Step time of steps ${lo} to ${hi}: median ${duration(mid)}, 99th percentile ${duration(median(durs, 0.99))}`}>
        {rows.length > bins && <polygon class="band" points={[...high, ...low.reverse()].join(' ')} />}
        <line class="mid" x1={LEFT} x2={w - 6} y1={y(mid)} y2={y(mid)} />
        <polyline class="line" points={high.join(' ')} />
        <text x={LEFT - 6} y={y(mid) + 4} text-anchor="end">{duration(mid)}</text>
        <text x={LEFT} y={TALL - 3}>{count(lo)}</text>
        <text x={w - 6} y={TALL - 3} text-anchor="end">{count(hi)}</text>
        {TALL - BASE - y(mid) > 16 && <text x={LEFT - 6} y={TALL - BASE} text-anchor="end">0</text>}
      </svg>}
    </div>
  );
}
