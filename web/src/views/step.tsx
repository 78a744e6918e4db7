/* step.tsx - one step: where each rank's time went, who was waited for, and how
 * the gradient buckets travelled. All bars share one axis from the step's begin.
 */

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { all_steps, findings, go, select, state, step_news } from '../state';
import { between_ns, bounded, bytes, count, duration, known, plural, signed_ratio } from '../lib/format';
import { Bucket, Collective, json, Problem, RankStep, StepDetail } from '../net/api';

const MAX_RANKS = 64, MAX_COLLECTIVES = 100, MAX_BUCKETS = 128;

/* In the order a step runs. Colours by class, see style.css; wait is hatched too. */
const PARTS: [keyof RankStep, string, string][] = [
  ['input_wait_ns', 'input', 'input'], ['fwd_ns', 'forward', 'fwd'], ['bwd_ns', 'backward', 'bwd'],
  ['wait_ns', 'wait for the last rank', 'wait'], ['transfer' as keyof RankStep, 'communication', 'comm'],
  ['opt_ns', 'optimizer', 'opt'], ['eval_ns', 'evaluation', 'eval'], ['other' as keyof RankStep, 'other', 'other'],
];

function partsOf(r: RankStep): { ns: number; name: string; cls: string }[] {
  const n = (v: number | null | undefined) => (known(v) && v > 0 ? v : 0);
  const wait = Math.min(n(r.wait_ns), n(r.exposed_comm_ns) || n(r.wait_ns));
  const by: Record<string, number> = {
    input_wait_ns: n(r.input_wait_ns), fwd_ns: n(r.fwd_ns), bwd_ns: n(r.bwd_ns), wait_ns: wait,
    transfer: Math.max(0, n(r.exposed_comm_ns) - wait), opt_ns: n(r.opt_ns), eval_ns: n(r.eval_ns),
  };
  const sum = Object.values(by).reduce((a, b) => a + b, 0);
  by.other = Math.max(0, n(r.dur_ns) - sum);
  return PARTS.map(([key, name, cls]) => ({ ns: by[key]!, name, cls })).filter((p) => p.ns > 0);
}

function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const host = useRef<HTMLDivElement>(null), [w, setW] = useState(0);
  useLayoutEffect(() => {
    const o = new ResizeObserver(() => setW(Math.floor(host.current!.clientWidth)));
    o.observe(host.current!);
    return () => o.disconnect();
  }, []);
  return [host, w];
}

export function StepView() {
  const s = state.value, all = all_steps.value, news = step_news.value;
  const step = s.step ?? findings.value.find((v) => v.first_step !== null)?.first_step ?? all.hi;
  const [got, setGot] = useState<StepDetail | null>(null);
  const [failed, setFailed] = useState<{ step: number; p: Problem } | null>(null);
  /* A step near the end may still be completed by a late rank. */
  const open = step >= all.hi - 3 ? news : 0;

  useEffect(() => {
    const abort = new AbortController();
    json<StepDetail>(`step/${step}`, { signal: abort.signal }).then((d) => {
      setGot(d);
      setFailed(null);
    }, (e) => {
      if (e instanceof Problem)
        setFailed({ step, p: e });
    });
    return () => abort.abort();
  }, [step, open]);

  const d = got && got.step.step === step ? got : null, bad = failed?.step === step ? failed.p : null;
  return (
    <>
      <div class="bar">
        <h1>Step {count(step)}</h1>
        <button type="button" disabled={step <= all.lo} onClick={() => select(s.rank, step - 1)} title="key: ,">Previous</button>
        <button type="button" disabled={step >= all.hi} onClick={() => select(s.rank, step + 1)} title="key: .">Next</button>
      </div>
      {bad && <section class="state" role="alert"><h2>{bad.status === 404 ? `Step ${count(step)} is not here` : bad.title}</h2>
        <p>{bad.detail}</p><p>{bad.hint || `Steps ${count(all.lo)} to ${count(all.hi)} are.`}</p>
        <p><button type="button" onClick={() => go({ step: all.hi })}>Newest step</button></p></section>}
      {!d && !bad && <section class="panel tall"><p class="dim">Loading step {count(step)}…</p></section>}
      {d && <Detail d={d} />}
    </>
  );
}

function Detail({ d }: { d: StepDetail }) {
  const sel = state.value.rank, st = d.step;
  const slow = st.slowest_rank;
  const known_slow = slow !== null && slow >= 0;
  const rows = [...d.ranks].sort((a, b) => a.rank - b.rank);
  let shown = rows;
  if (rows.length > MAX_RANKS) {
    /* The slowest ones, and the one that was chosen. */
    const worst = [...rows].sort((a, b) => (b.excess_ratio ?? -1) - (a.excess_ratio ?? -1)).slice(0, MAX_RANKS - 1);
    shown = rows.filter((r) => worst.includes(r) || r.rank === sel);
  }
  return (
    <>
      <p class="lede">
        {duration(st.dur_ns)}{known(st.dur_err_ns) && ` ± ${duration(st.dur_err_ns)}`} from the first rank's begin to the last rank's
        end, {plural(st.n_ranks, 'rank')}. {known_slow ? <>Slowest by its own work: <b>rank {slow}</b>.</> : 'No rank is clearly the slowest.'}
        {!st.complete && <span class="why off"> Not complete: some ranks have not reported this step.</span>}
      </p>
      <section class="panel">
        <h2>Where the time went</h2>
        {shown.length < rows.length && <p class="note">{shown.length} of {count(rows.length)} ranks: those with the highest excess over their
          peers{sel !== null ? ', and the selected one' : ''}.</p>}
        <Ranks rows={shown} sel={sel} begin={st.begin_ns} dur={st.dur_ns ?? 0} slow={known_slow ? slow : null} />
      </section>
      <Collectives list={d.collectives} sel={sel} />
      <Buckets list={d.buckets} sel={sel} begin={st.begin_ns} dur={st.dur_ns ?? 0} />
    </>
  );
}

function Hatch() {
  return <defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
    <rect class="hatch-bg" width="5" height="5" /><rect class="hatch-fg" width="2" height="5" /></pattern></defs>;
}

function Ranks({ rows, sel, begin, dur, slow }: { rows: RankStep[]; sel: number | null; begin: string | null; dur: number; slow: number | null }) {
  const [host, w] = useWidth();
  const ROW = 24, LEFT = 38, RIGHT = 4, h = rows.length * ROW + 22;
  const offset = (r: RankStep) => Math.max(0, between_ns(begin, r.begin_ns) ?? 0);
  const total = Math.max(dur, ...rows.map((r) => offset(r) + (r.dur_ns ?? 0)), 1);
  const x = (ns: number) => (ns / total) * (w - LEFT - RIGHT);
  const used = PARTS.filter(([, name]) => rows.some((r) => partsOf(r).some((p) => p.name === name)));
  return (
    <>
      <ul class="keys-legend">{used.map(([, name, cls]) => <li key={name}><svg width="14" height="12" aria-hidden="true"><Hatch />
        <rect class={`part ${cls}`} width="14" height="12" /></svg>{name}</li>)}</ul>
      <div ref={host}>
        {w > 0 && <svg width={w} height={h} role="img" aria-label="Breakdown of each rank's step; the table below has the numbers">
          <Hatch />
          {rows.map((r, i) => {
            let at = LEFT + x(offset(r));
            return <g key={r.rank} class={`lane${r.rank === sel ? ' sel' : ''}`} onClick={() => select(r.rank, state.value.step)}>
              <rect class="lane-bg" x="0" y={i * ROW} width={w} height={ROW} />
              <text class="label" x={LEFT - 7} y={i * ROW + 16} text-anchor="end">r{r.rank}</text>
              {partsOf(r).map((p) => {
                const from = at;
                at += x(p.ns);
                return <rect key={p.name} class={`part ${p.cls}`} x={from} y={i * ROW + 4} width={Math.max(0.5, x(p.ns))} height={ROW - 8}>
                  <title>{`rank ${r.rank}: ${p.name} ${duration(p.ns)}`}</title></rect>;
              })}
            </g>;
          })}
          {[0, 0.25, 0.5, 0.75, 1].map((t) => <g key={t} class="tick">
            <line x1={LEFT + x(total * t)} x2={LEFT + x(total * t)} y1={h - 22} y2={h - 17} />
            <text x={LEFT + x(total * t)} y={h - 5} text-anchor={t === 0 ? 'start' : t === 1 ? 'end' : 'middle'}>{t === 0 ? '0' : duration(total * t)}</text></g>)}
        </svg>}
      </div>
      <div class="scroll" tabIndex={0} role="group" aria-label="Numbers of each rank">
        <table class="numbers" id="rank-numbers">
          <thead><tr><th scope="col">rank</th><th scope="col">step</th><th scope="col">self</th><th scope="col">vs peers</th><th scope="col">input</th>
            <th scope="col">forward</th><th scope="col">backward</th><th scope="col">optimizer</th><th scope="col">exposed comm.</th>
            <th scope="col">of it wait</th><th scope="col">coverage</th></tr></thead>
          <tbody>{rows.map((r) => (
            <tr key={r.rank} class={r.rank === sel ? 'sel' : ''} data-rank={r.rank} data-self-ns={r.self_ns ?? ''}>
              <th scope="row">{r.rank}{r.rank === slow && <span class="tag">slowest</span>}</th>
              <td>{duration(r.dur_ns)}</td><td>{duration(r.self_ns)}</td><td>{signed_ratio(r.excess_ratio)}</td>
              <td>{duration(r.input_wait_ns)}</td><td>{duration(r.fwd_ns)}</td><td>{duration(r.bwd_ns)}</td><td>{duration(r.opt_ns)}</td>
              <td>{duration(r.exposed_comm_ns)}</td><td>{bounded(r.wait_ns, r.wait_err_ns)}</td>
              <td>{known(r.coverage) ? `${(r.coverage * 100).toFixed(r.coverage < 1 ? 1 : 0)} %` : 'unknown'}</td>
            </tr>))}</tbody>
        </table>
      </div>
    </>
  );
}

function Collectives({ list, sel }: { list: Collective[]; sel: number | null }) {
  const [by_skew, setBySkew] = useState(false);
  if (list.length === 0)
    return <section class="panel"><h2>Collectives</h2><p class="dim">No collective was seen in this step.</p></section>;
  const sorted = [...list].sort((a, b) => by_skew ? (b.skew_ns ?? -1) - (a.skew_ns ?? -1) : a.comm_id < b.comm_id ? -1 : a.comm_id > b.comm_id ? 1 : a.seq - b.seq);
  const shown = sorted.slice(0, MAX_COLLECTIVES);
  const most = Math.max(1, ...list.map((c) => (c.skew_ns ?? 0)));
  return (
    <section class="panel">
      <div class="row"><h2>Collectives</h2><span class="grow" />
        <button type="button" aria-pressed={by_skew} onClick={() => setBySkew(!by_skew)}>Largest spread first</button></div>
      <p class="note">The late rank waits least. A rank is named only when its arrival is later than every other's by more than both clock
        errors.{shown.length < list.length && ` Showing ${shown.length} of ${count(list.length)}${by_skew ? '' : '; sort by spread to see the worst'}.`}</p>
      <div class="scroll" tabIndex={0} role="group" aria-label="Collectives of this step">
        <table class="numbers collectives">
          <thead><tr><th scope="col">group · seq</th><th scope="col">call</th><th scope="col">size</th><th scope="col">arrivals, 0 to {duration(most)}</th>
            <th scope="col">spread</th><th scope="col">last in</th></tr></thead>
          <tbody>{shown.map((c) => (
            <tr key={`${c.comm_id}/${c.seq}`}>
              <th scope="row">{c.comm_id} · {count(c.seq)}</th><td>{c.op} <span class="dim">{c.dtype}</span></td><td>{bytes(c.bytes)}</td>
              <td class="spread"><Spread c={c} most={most} sel={sel} /></td>
              <td>{bounded(c.skew_ns, c.skew_err_ns)}</td>
              <td>{c.decided && known(c.last_rank) && c.last_rank >= 0
                ? <button type="button" class="link" onClick={() => select(c.last_rank, state.value.step)}>rank {c.last_rank}</button>
                : <span class="dim">too close</span>}</td>
            </tr>))}</tbody>
        </table>
      </div>
    </section>
  );
}

const SPREAD_W = 240;

function Spread({ c, most, sel }: { c: Collective; most: number; sel: number | null }) {
  let first: string | null = null;
  for (const a of c.arrivals)
    if (a.arrival_ns && (first === null || (between_ns(first, a.arrival_ns) ?? 0) < 0))
      first = a.arrival_ns;
  const x = (ns: number) => 6 + (ns / most) * (SPREAD_W - 12);
  const late = c.arrivals.map((a) => ({ a, ns: between_ns(first, a.arrival_ns) })).filter((v): v is { a: typeof v.a; ns: number } => v.ns !== null);
  const text = late.map((v) => `rank ${v.a.rank} +${duration(v.ns)}`).slice(0, 16).join(', ');
  return (
    <svg width={SPREAD_W} height="18" role="img" aria-label={`Arrivals: ${text}`}>
      <line class="rule" x1="6" x2={SPREAD_W - 6} y1="9" y2="9" />
      {late.map(({ a, ns }) => {
        const last = !!c.decided && a.rank === c.last_rank, e = (a.arrival_err_ns ?? 0) / most * (SPREAD_W - 12);
        return <g key={a.rank} class={`arrival${last ? ' last' : ''}${a.rank === sel ? ' sel' : ''}`}>
          {e > 0.5 && <line x1={Math.max(0, x(ns) - e)} x2={Math.min(SPREAD_W, x(ns) + e)} y1="9" y2="9" />}
          {last ? <rect x={x(ns) - 4} y="5" width="8" height="8" /> : <circle cx={x(ns)} cy="9" r="3.5" />}
          <title>{`rank ${a.rank}: +${duration(ns)}${known(a.arrival_err_ns) ? ` ± ${duration(a.arrival_err_ns)}` : ''}, waited ${duration(a.wait_ns)}`}</title>
        </g>;
      })}
    </svg>
  );
}

function Buckets({ list, sel, begin, dur }: { list: Bucket[]; sel: number | null; begin: string | null; dur: number }) {
  const [host, w] = useWidth();
  if (list.length === 0)
    return null;
  const ROW = 20, LEFT = 150, RIGHT = 8;
  let rows = [...list].sort((a, b) => a.micro - b.micro || a.bucket - b.bucket || a.rank - b.rank);
  const one = rows.length > MAX_BUCKETS ? sel ?? rows[0]!.rank : null;
  if (one !== null)
    rows = rows.filter((b) => b.rank === one).slice(0, MAX_BUCKETS);
  const at = rows.map((b) => [b.ready_ns, b.submitted_ns, b.started_ns, b.reduced_ns, b.applied_ns].map((t) => between_ns(begin, t)));
  const all = at.flat().filter((v): v is number => v !== null);
  const lo = Math.min(...all, dur), hi = Math.max(...all, lo + 1);
  const x = (ns: number) => LEFT + ((ns - lo) / (hi - lo)) * (w - LEFT - RIGHT);
  const h = rows.length * ROW + 22;
  return (
    <section class="panel">
      <h2>Gradient buckets</h2>
      <p class="note"><b>G</b> gradient ready · <b>S</b> submitted · bar: reducing · <b>R</b> reduced · <b>U</b> applied.
        {one !== null && ` Rank ${one} of ${count(new Set(list.map((b) => b.rank)).size)}; select another rank to see its buckets.`}</p>
      <div ref={host}>
        {w > 0 && <svg width={w} height={h} role="img" aria-label="Life of each gradient bucket on each rank">
          {rows.map((b, i) => {
            const [g, s, q, r, u] = at[i]! as (number | null)[];
            const y = i * ROW, mid = y + ROW / 2, from = q ?? s ?? null, end = u ?? r ?? s ?? g ?? null, start = g ?? s ?? q ?? null;
            const text = `rank ${b.rank}, bucket ${b.bucket}: ready → submitted ${gap(g, s)}, submitted → reduced ${gap(s, r)}, reduced → applied ${gap(r, u)}`;
            return <g key={`${b.rank}/${b.micro}/${b.bucket}`} class={`lane${b.rank === sel ? ' sel' : ''}`}>
              <rect class="lane-bg" x="0" y={y} width={w} height={ROW} /><title>{text}</title>
              <text class="label" x="4" y={mid + 4}>{`b${b.bucket}${b.micro ? `.${b.micro}` : ''} · r${b.rank} · ${bytes(b.bytes)}`}</text>
              {start !== null && end !== null && <line class="rule" x1={x(start)} x2={x(end)} y1={mid} y2={mid} />}
              {from !== null && r !== null && <rect class="part comm" x={x(from)} y={y + 5} width={Math.max(1, x(r!) - x(from))} height={ROW - 10} />}
              {g !== null && <circle class="dot g" cx={x(g!)} cy={mid} r="3.5" />}
              {s !== null && <rect class="dot s" x={x(s!) - 1} y={y + 3} width="2" height={ROW - 6} />}
              {r !== null && <rect class="dot r" x={x(r!) - 1} y={y + 3} width="2" height={ROW - 6} />}
              {u !== null && <path class="dot u" d={`M${x(u!) - 4} ${mid + 4}h8l-4 -8z`} />}
            </g>;
          })}
          {[0, 0.5, 1].map((t) => <g key={t} class="tick"><text x={LEFT + t * (w - LEFT - RIGHT)} y={h - 5}
            text-anchor={t === 0 ? 'start' : t === 1 ? 'end' : 'middle'}>{`+${duration(lo + t * (hi - lo))}`}</text></g>)}
        </svg>}
      </div>
    </section>
  );
}

function gap(a: number | null | undefined, b: number | null | undefined): string {
  return known(a) && known(b) ? duration(b - a) : 'unknown';
}
