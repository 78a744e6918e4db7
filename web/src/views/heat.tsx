/* heat.tsx (view) - the heatmap with its choices, scale and table form. */

import type { ComponentChildren } from 'preact';
import { boot, findings, following, go, is_live, linkTo, said, setSteps, shift, all_steps, shown_ranks, shown_steps, state, tiles } from '../state';
import { placeOf, toggleLive } from '../keys';
import { count, plural } from '../lib/format';
import { frame, Heat, valueText } from '../parts/heat';
import { Legend } from '../parts/legend';
import { Frame, METRICS, ranksOf, stepsOf } from '../parts/frame';

const MAX_TABLE_ROWS = 1000, MAX_TABLE_STEPS = 12;

function Choice({ id, label, value, options, set }: {
  id: string; label: string; value: string; options: [string, string][]; set: (v: string) => void;
}) {
  return (
    <label class="choice" for={id}><span>{label}</span>
      <select id={id} value={value} onChange={(e) => set(e.currentTarget.value)}>
        {options.map(([v, text]) => <option key={v} value={v}>{text}</option>)}
      </select>
    </label>
  );
}

export function HeatView() {
  const b = boot.value!, s = state.value, f = frame.value, ranks = shown_ranks.value, steps = shown_steps.value;
  const known = (list: string[], v: string): [string, string][] => (list.includes(v) ? list : [...list, v]).map((x) => [x, x]);
  return (
    <>
      <h1 class="sr">Heatmap, rank by step</h1>
      <div class="bar">
        <Choice id="metric" label="metric" value={s.metric} set={(metric) => go({ metric })}
          options={known(b.heat.metrics, s.metric).map(([v]) => [v, METRICS[v] ?? v])} />
        <Choice id="baseline" label="against" value={s.baseline} set={(baseline) => go({ baseline, contrast: null })}
          options={known(b.heat.baselines, s.baseline).map(([v]) => [v, v === 'peers' ? 'peers of the same step' : v === 'raw' ? 'nothing (raw)' : v])} />
        <Choice id="agg" label="rollup" value={s.agg} set={(agg) => go({ agg })} options={known(b.heat.aggs, s.agg)} />
        {s.baseline === 'peers' && <Choice id="contrast" label="contrast" value={s.contrast === null ? 'auto' : `${s.contrast}`}
          set={(v) => go({ contrast: v === 'auto' ? null : Number(v) })}
          options={[['auto', 'auto'], ...[5, 10, 20, 50, 100, 400].map((n): [string, string] => [`${n}`, `±${n} %`]),
            ...(s.contrast !== null && ![5, 10, 20, 50, 100, 400].includes(s.contrast) ? [[`${s.contrast}`, `±${s.contrast} %`] as [string, string]] : [])]} />}
        <span class="range">ranks {count(ranks.lo)}–{count(ranks.hi)} · steps {count(steps.lo)}–{count(steps.hi)}</span>
        <span class="grow" />
        {(s.ranks || s.steps) && <button type="button" onClick={() => go({ ranks: null, steps: null })} title="key: 0">Show all</button>}
        {is_live.value && <button type="button" aria-pressed={following.value} onClick={toggleLive} title="key: l">Follow</button>}
        <button type="button" aria-pressed={s.table} onClick={() => go({ table: !s.table })} title="key: t">As table</button>
      </div>
      <section class="panel">
        <Heat />
        {f && <div class="under">
          <span class="rollup">{f.rollup}{tiles.n_pending > 0 && f.grid.n_have < f.grid.n_wanted ? ` · loading ${f.grid.n_wanted - f.grid.n_have} of ${f.grid.n_wanted} tiles` : ''}</span>
          <Legend f={f} />
        </div>}
        {f && f.n_missing > 0 && <p class="note">{plural(f.n_missing, 'hatched cell')}: a rank was expected there and reported
          nothing. Means leave them out.</p>}
        {f && f.grid.n_have > 0 && f.grid.codes.every((c) => c === 0) && <p class="note">No data for ranks {f.ranks.lo}–{f.ranks.hi} in
          steps {f.steps.lo}–{f.steps.hi}. <a href={linkTo({ ranks: null, steps: null })}>Show all</a></p>}
      </section>
      <FindingStrip />
      {s.table && f && <Table f={f} />}
    </>
  );
}

function FindingStrip() {
  const list = findings.value;
  if (list.length === 0)
    return null;
  return (
    <ul class="strip" aria-label="Findings">
      {list.slice(0, 9).map((v, i) => {
        const p = placeOf(v);
        return <li key={v.id}><a href={linkTo(p)}><b>{i + 1}</b>
          <span class="who">{p.rank !== null && `rank ${p.rank} `}{p.step !== null && `since step ${count(p.step)}`}</span>
          <span class="dim">{v.class}</span><span>{v.sentence}</span></a></li>;
      })}
    </ul>
  );
}

/* What the picture shows, in words and numbers. */
function Table({ f }: { f: Frame }) {
  const n = Math.min(f.plan.ny, MAX_TABLE_ROWS), cols = Math.min(f.plan.nx, MAX_TABLE_STEPS);
  /* The columns round the selection, else the newest. */
  const sel = state.value.step === null ? f.plan.nx - 1 : Math.floor(state.value.step / 2 ** f.plan.zs) - f.plan.x0;
  const first = Math.max(0, Math.min(f.plan.nx - cols, sel - (cols >> 1)));
  const name = (r: { lo: number; hi: number }) => r.lo === r.hi ? `${r.lo}` : `${r.lo}–${r.hi}`;
  const rows: ComponentChildren[] = [];
  for (let y = 0; y < n; y++) {
    let high = NaN, low = NaN, at = -1, missing = 0, unsure = 0;
    for (let x = 0; x < f.plan.nx; x++) {
      const code = f.grid.codes[y * f.plan.nx + x]!, v = f.values[code]!;
      missing += +(code === 1);
      unsure += +(code === 253);
      if (v === v && !(high >= v)) {
        high = v;
        at = x;
      }
      if (v === v && !(low <= v))
        low = v;
    }
    rows.push(
      <tr key={y}>
        <th scope="row">{name(ranksOf(f, y))}</th>
        <td>{valueText(f, f.row_mean[y]!)}</td><td>{valueText(f, high)}</td>
        <td>{at < 0 ? '' : name(stepsOf(f, at))}</td><td>{valueText(f, low)}</td><td>{missing}</td><td>{unsure}</td>
        {Array.from({ length: cols }, (_, i) => {
          const code = f.grid.codes[y * f.plan.nx + first + i]!;
          return <td key={i}>{code === 0 ? '' : code === 1 ? 'missing' : code === 253 ? 'cannot say' : code === 254 ? 'not finite' : valueText(f, f.values[code]!)}</td>;
        })}
      </tr>);
  }
  const page = (by: number): void => {
    const s = shown_steps.value;
    if (state.value.steps)
      setSteps(shift(s, by * (s.hi - s.lo + 1), all_steps.value));
    else
      said.value = 'All steps are shown.';
  };
  return (
    <section class="panel">
      <h2>{METRICS[f.metric] ?? f.metric}{f.scale.peers ? ', excess over peers' : ''} · {f.rollup}</h2>
      {f.plan.ny > n && <p class="note">First {n} of {f.plan.ny} rows. Zoom in to see the others.</p>}
      <div class="scroll" tabIndex={0} role="group" aria-label="Heatmap as table">
        <table class="numbers">
          <thead><tr><th scope="col">rank</th><th scope="col">mean</th><th scope="col">highest</th><th scope="col">at step</th>
            <th scope="col">lowest</th><th scope="col">missing</th><th scope="col">cannot say</th>
            {Array.from({ length: cols }, (_, i) => <th scope="col" key={i}>{name(stepsOf(f, first + i))}</th>)}</tr></thead>
          <tbody>{rows}</tbody>
        </table>
      </div>
      {state.value.steps && <p class="row"><button type="button" onClick={() => page(-1)}>Earlier steps</button>
        <button type="button" onClick={() => page(1)}>Later steps</button></p>}
    </section>
  );
}
