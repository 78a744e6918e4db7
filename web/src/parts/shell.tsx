/* shell.tsx - what every view stands in: the honesty header, the views, the
 * selection. Whatever makes a number less true turns amber and says so in words.
 */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { between_ns, count, duration, instant, plural, share } from '../lib/format';
import type { Boot } from '../net/api';
import {
  boot, down_since_ms, help_open, link, linkTo, login, needs_token, now_ms, problem, said, select, state, tiles,
} from '../state';
import { copyLink, keys_on, setKeysOn } from '../keys';
import type { View } from '../lib/hash';
import { frame, cellText } from './heat';

const VIEWS: [View, string, string][] = [['now', 'Now', 'g n'], ['heat', 'Heatmap', 'g h'], ['step', 'Step', 'g s']];

export function Fact({ label, value, off }: { label: string; value: string; off?: string | false | null }) {
  return (
    <div class={`fact${off ? ' off' : ''}`}>
      <dt>{label}</dt><dd>{value}{off && <span class="why">{off}</span>}</dd>
    </div>
  );
}

function pill(b: Boot): { text: string; kind: string; why: string } {
  if (link.value === 'down' && b.live.state !== 'snapshot')
    return { text: 'NO LINK', kind: 'off', why: `collector unreachable for ${duration(Math.max(0, now_ms.value - down_since_ms.value) * 1e6)}` };
  switch (b.live.state) {
  case 'live': return { text: 'LIVE', kind: 'live', why: link.value === 'polling' ? 'by polling, 2 s' : '' };
  case 'stale': return { text: 'STALE', kind: 'off', why: `last event ${age(b)} ago` };
  case 'ended': return { text: 'ENDED', kind: '', why: b.run.ended_ns ? instant(b.run.ended_ns) : '' };
  case 'snapshot': return { text: 'SNAPSHOT', kind: '', why: `not live · ${instant(b.live.last_event_ns ?? b.run.ended_ns)}` };
  case 'waiting': return { text: 'WAITING', kind: 'wait', why: 'no rank yet' };
  }
  return { text: 'UNKNOWN', kind: 'off', why: '' };
}

function age(b: Boot): string {
  return duration(between_ns(b.live.last_event_ns, b.live.now_ns));
}

function Header() {
  const b = boot.value;
  if (!b)
    return <header class="top"><a class="brand" href="#/now">syncline</a><span class="pill">{needs_token.value ? 'LOCKED' : problem.value && !problem.value.not_yet ? 'NO LINK' : 'LOADING'}</span></header>;
  const p = pill(b), c = b.coverage, lost = (c.events_lost ?? 0) + (c.drops ?? 0);
  const expected = c.ranks_expected ?? b.run.world_size ?? 0;
  const silent = expected > c.ranks_seen && b.live.state !== 'waiting';
  const coarse = b.clock.unaligned > 0 ? `${plural(b.clock.unaligned, 'host')} not aligned`
    : b.clock.error_ns !== null && b.clock.error_ns > 1e6 ? 'coarse' : null;
  const o = b.overhead, heavy = o.known && o.agent_cpu_ratio !== null && o.agent_cpu_ratio > 0.02;
  return (
    <header class="top">
      <a class="brand" href={linkTo({ view: 'now' })}>syncline</a>
      <span class="run" title={`run ${b.run.run_id}`}><span class="dim">run</span> {b.run.name || b.run.run_id}</span>
      <span class={`pill ${p.kind}`}><i aria-hidden="true" />{p.text}{p.why && <span class="why">{p.why}</span>}</span>
      <dl class="facts">
        <Fact label="step" value={b.live.step === null ? 'none yet' : `${count(b.live.step)}`} />
        <Fact label="step time" value={b.live.step_ns === null ? 'unknown' : duration(b.live.step_ns)} />
        <Fact label="ranks" value={expected ? `${count(c.ranks_seen)} of ${count(expected)}` : count(c.ranks_seen)}
          off={silent && `${count(expected - c.ranks_seen)} silent`} />
        <Fact label="drops" value={count(lost)} off={lost > 0 && 'events lost'} />
        <Fact label="clock" value={b.clock.error_ns === null ? 'unknown' : `±${duration(b.clock.error_ns)}`} off={coarse} />
        <Fact label="overhead" value={o.known ? `${share(o.agent_cpu_ratio)} CPU` : 'not measured'} off={heavy && 'high'} />
      </dl>
    </header>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  const s = state.value;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the view</a>
      <Header />
      <nav class="views" aria-label="Views">
        {VIEWS.map(([view, name, keys]) => (
          <a key={view} href={linkTo({ view })} aria-current={s.view === view ? 'page' : undefined} title={`keys: ${keys}`}>{name}</a>
        ))}
        <span class="grow" />
        <button type="button" onClick={copyLink} title="key: y">Copy link</button>
        <button type="button" onClick={() => { help_open.value = true; }} title="key: ?" aria-haspopup="dialog">Keys <kbd>?</kbd></button>
      </nav>
      <StateBanner />
      <main id="main" tabIndex={-1}>{children}</main>
      <Selection />
      <div class="sr" aria-live="polite">{said.value}</div>
      {help_open.value && <Help />}
    </>
  );
}

/* Every state of the data has its sentence. */
function StateBanner() {
  const b = boot.value, t = tiles.problem;
  if (!b)
    return null;
  if (link.value === 'down' && b.live.state !== 'snapshot')
    return <p class="banner off" role="status">
      The collector does not answer. What you see is {duration(Math.max(0, now_ms.value - down_since_ms.value) * 1e6)} old.
      This page tries again by itself; is the collector running, and the tunnel to it open?</p>;
  if (b.live.state === 'snapshot')
    return <p class="banner">Snapshot of {instant(b.live.last_event_ns ?? b.run.ended_ns)}, not live.</p>;
  if (b.live.state === 'stale')
    return <p class="banner off" role="status">Last event {age(b)} ago
      {b.live.step_ns !== null && <> (a step usually takes {duration(b.live.step_ns)})</>}. The job may hang, or its agents are gone.
      Ask <code>syncline status</code>.</p>;
  if (t)
    return <p class="banner off" role="status">{t.message} (code {t.status}). {t.hint} The last picture stays.</p>;
  return null;
}

function Selection() {
  const s = state.value, f = frame.value;
  if (s.rank === null && s.step === null)
    return null;
  let text = '';
  if (f && s.rank !== null && s.step !== null) {
    const x = Math.floor(s.step / 2 ** f.plan.zs) - f.plan.x0, y = Math.floor(s.rank / 2 ** f.plan.zr) - f.plan.y0;
    if (x >= 0 && y >= 0 && x < f.plan.nx && y < f.plan.ny && s.view === 'heat')
      text = cellText(f, x, y);
  }
  return (
    <div class="selection" role="status">
      <b>{[s.rank === null ? '' : `rank ${s.rank}`, s.step === null ? '' : `step ${count(s.step)}`].filter(Boolean).join(' · ')}</b>
      {text && <span class="dim">{text.replace(/^[^:]*: /, '')}</span>}
      <span class="grow" />
      {s.view !== 'heat' && <a href={linkTo({ view: 'heat' })}>Heatmap</a>}
      {s.view !== 'step' && s.step !== null && <a href={linkTo({ view: 'step' })}>Open step</a>}
      <button type="button" onClick={() => select(null, null)} title="key: Esc">Clear</button>
    </div>
  );
}

const KEYS: [string, string][] = [
  ['g n · g h · g s', 'go to Now, Heatmap, Step'], ['← → ↑ ↓ or a d w s', 'pan the heatmap'],
  ['+ − 0', 'zoom in, out, fit everything'], [', .', 'previous, next step'], ['[ ]', 'previous, next rank'],
  ['Enter', 'open the selected step'], ['Esc', 'clear the selection, then one view up'],
  ['j k', 'next, previous finding'], ['f', 'focus the selection'], ['l', 'follow the newest step, on or off'],
  ['m b o', 'choose metric, baseline, rollup'], ['t', 'heatmap as table'], ['y', 'copy link'], ['?', 'this help'],
];

function Help() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const d = box.current!;
    if (!d.open)
      d.showModal();
    return () => d.close();
  }, []);
  const close = (): void => { help_open.value = false; };
  return (
    <dialog ref={box} class="help" aria-labelledby="help-title" onClose={close}
      onClick={(e) => e.target === box.current && close()}>
      <div class="help-in">
        <h2 id="help-title">Keys</h2>
        <dl class="keys">{KEYS.map(([k, v]) => <div key={k}><dt>{k.split(' ').map((w, i) =>
          ['·', 'or'].includes(w) ? ` ${w} ` : <kbd key={i}>{w}</kbd>)}</dt><dd>{v}</dd></div>)}</dl>
        <label class="check"><input type="checkbox" checked={keys_on.value} onChange={(e) => setKeysOn(e.currentTarget.checked)} />
          Single-letter keys</label>
        <h2>About</h2>
        <p>syncline {boot.value?.version ?? ''}, Apache-2.0. In the heatmap, a pointer drawn over cells zooms to them, a
          click opens the step, a double click shows everything. Excess compares a rank with the median of its peers in the
          same step. The late rank waits least: in a collective, look for the smallest wait.</p>
        <button type="button" onClick={close} autofocus>Close</button>
      </div>
    </dialog>
  );
}

export function Waiting() {
  const b = boot.value!, n = b.coverage.ranks_expected ?? b.run.world_size ?? 0;
  return (
    <section class="state">
      <h1>{b.live.n_ranks > 0 ? 'Waiting for the first step' : 'Waiting for agents'}</h1>
      <p>{b.live.listen ? <>Listening on <code>{b.live.listen}</code>. </> : null}
        {count(b.coverage.ranks_seen)} of {n ? count(n) : 'an unknown number of'} ranks are here,
        {' '}{plural(b.live.n_agents ?? 0, 'agent')} connected.</p>
      <p>Start a job with</p>
      <pre><code>syncline run{b.live.listen ? ` --collector ${b.live.listen}` : ''} -- \{'\n'}    torchrun --nproc_per_node=4 train.py</code></pre>
      <p>or see a planted slow rank being found: <code>syncline demo</code>. This page shows the first step by itself.</p>
    </section>
  );
}

export function Failed() {
  const p = problem.value!;
  return (
    <section class="state" role="alert">
      <h1>{p.title}</h1>
      {p.detail && <p>{p.detail}</p>}
      <p>{p.hint || 'This page tries again every 2 s.'}</p>
      <p class="dim">code {p.status || 'none'} · {location.host || 'no host'}</p>
    </section>
  );
}

/* The known size at once; a word only when it takes long. */
export function Loading() {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const t = setTimeout(() => setLate(true), 300);
    return () => clearTimeout(t);
  }, []);
  return <section class="state"><p class="dim" role="status">{late ? problem.value?.detail || 'Loading the run…' : '\u00a0'}</p></section>;
}

export function Token() {
  const [text, setText] = useState(''), [error, setError] = useState('');
  const submit = (): void => { void login(text.trim()).then(setError); };
  return (
    <section class="state">
      <h1>This collector wants a token</h1>
      <p>It is reached over the network, so it shows a run only to those who hold its token. The person who started it
        gave it as <code>--http-token-file</code>.</p>
      <div class="row">
        <label for="token">Token</label>
        <input id="token" type="password" autocomplete="off" value={text} onInput={(e) => setText(e.currentTarget.value)}
          onKeyDown={(e) => e.key === 'Enter' && submit()} />
        <button type="button" onClick={submit} disabled={!text.trim()}>Open</button>
      </div>
      {error && <p class="error" role="alert">{error}</p>}
    </section>
  );
}
