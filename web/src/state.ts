/* state.ts - what the page knows and what the person chose.
 *
 * Two owners: the link in the address bar owns the choices (`state`), the
 * collector owns the facts (`boot` and what follows it). Views only read these
 * signals and call the verbs below.
 */

import { batch, computed, signal } from '@preact/signals';
import { Boot, Facts, Finding, json, Problem, API } from './net/api';
import { follow, News } from './net/live';
import { isKept } from './net/kept';
import { TileCache } from './net/tiles';
import { DEFAULT, formatHash, parseHash, Range, State } from './lib/hash';

export const state = signal<State>(DEFAULT);
export const boot = signal<Boot | null>(null);
export const findings = signal<Finding[]>([]);
export const problem = signal<Problem | null>(null); /* of boot: nothing can be shown yet */
export const link = signal<'connecting' | 'up' | 'polling' | 'down'>('connecting');
export const down_since_ms = signal(0);
export const tiles_changed = signal(0);
export const step_news = signal(-1); /* newest step that changed */
export const needs_token = signal(false);
export const now_ms = signal(Date.now());
export const said = signal(''); /* read out politely */
export const help_open = signal(false);

export const tiles = new TileCache(() => { tiles_changed.value++; });

export const all_ranks = computed<Range>(() => ({ lo: 0, hi: Math.max(0, (boot.value?.axes.n_ranks ?? 1) - 1) }));
export const all_steps = computed<Range>(() => {
  const a = boot.value?.axes, lo = a?.first_step ?? 0;
  return { lo, hi: Math.max(lo, a?.last_step ?? lo) };
});
export const has_steps = computed(() => {
  const a = boot.value?.axes;
  return !!a && a.last_step !== null && a.n_ranks > 0;
});
export const is_live = computed(() => boot.value?.live.state === 'live' || boot.value?.live.state === 'stale');
export const shown_ranks = computed<Range>(() => clip(state.value.ranks, all_ranks.value));
export const shown_steps = computed<Range>(() => clip(state.value.steps, all_steps.value));

function clip(r: Range | null, all: Range): Range {
  if (!r || r.lo > all.hi || r.hi < all.lo)
    return all;
  return { lo: Math.max(r.lo, all.lo), hi: Math.min(r.hi, all.hi) };
}

/* ---- choices ---- */

let written = '';
let write_timer: ReturnType<typeof setTimeout> | undefined;

export function go(change: Partial<State>): void {
  const before = state.value, next = { ...before, ...change };
  state.value = next;
  const view_changed = next.view !== before.view;
  if (view_changed) {
    flush();
    written = formatHash(next);
    history.pushState(null, '', written);
    window.scrollTo(0, 0);
  } else {
    write_timer ??= setTimeout(flush, 250); /* a pan is one entry, not sixty a second */
  }
}

export function flush(): void {
  clearTimeout(write_timer);
  write_timer = undefined;
  const hash = formatHash(state.value);
  if (hash !== written && !location.hash.startsWith('#token='))
    history.replaceState(null, '', hash);
  written = hash;
}

export function linkTo(change: Partial<State>): string {
  return formatHash({ ...state.value, ...change });
}

export function readHash(): void {
  clearTimeout(write_timer);
  write_timer = undefined;
  state.value = parseHash(location.hash);
  written = location.hash;
}

/* Moves the selection; the picture follows when it would leave it. */
export function select(rank: number | null, step: number | null): void {
  const change: Partial<State> = { rank, step };
  const s = shown_steps.value, r = shown_ranks.value;
  if (step !== null && state.value.steps && (step < s.lo || step > s.hi))
    change.steps = shift(s, step < s.lo ? step - s.lo : step - s.hi, all_steps.value);
  if (rank !== null && state.value.ranks && (rank < r.lo || rank > r.hi))
    change.ranks = shift(r, rank < r.lo ? rank - r.lo : rank - r.hi, all_ranks.value);
  go(change);
}

export function shift(r: Range, by: number, all: Range): Range {
  const n = r.hi - r.lo, lo = Math.max(all.lo, Math.min(all.hi - n, r.lo + by));
  return { lo, hi: lo + n };
}

/* factor < 1 zooms in; `at` (0..1) is the place that stays. */
export function zoom(r: Range, factor: number, at: number, all: Range, n_min: number): Range | null {
  const n_all = all.hi - all.lo + 1, n = r.hi - r.lo + 1;
  const want = Math.max(Math.min(n_min, n_all), Math.round(n * factor));
  const size = want === n ? n + Math.sign(factor - 1) : want;
  if (size >= n_all)
    return null;
  const lo = Math.round(r.lo + (n - size) * at);
  return shift({ lo, hi: lo + Math.max(1, size) - 1 }, 0, all);
}

/* A window moves with the run only while it ends at the newest step. */
export const following = computed(() => {
  const s = state.value;
  return s.live && (!s.steps || s.steps.hi >= all_steps.value.hi);
});

export function setSteps(steps: Range | null): void {
  go({ steps });
}

/* ---- facts ---- */

let facts_timer: ReturnType<typeof setTimeout> | undefined;

export async function load(): Promise<void> {
  try {
    const b = await json<Boot>('boot');
    batch(() => {
      problem.value = null;
      needs_token.value = false;
      boot.value = b;
      findings.value = b.findings ?? [];
      tiles.expire();
      tiles_changed.value++;
    });
  } catch (e) {
    const p = e instanceof Problem ? e : new Problem(0, 'The page cannot start', String(e), 'Reload it.');
    if (p.status === 401)
      needs_token.value = true;
    else {
      problem.value = p;
      setTimeout(() => void load(), p.not_yet ? Math.max(1, p.retry_s ?? 0) * 1000 : 2000);
    }
  }
}

export async function login(token: string): Promise<string> {
  try {
    const r = await fetch(`${API}login`, {
      method: 'POST', credentials: 'same-origin', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ token }),
    });
    if (!r.ok)
      return r.status === 401 ? 'This token is not the collector’s.' : `The collector answered ${r.status}.`;
    start();
    return '';
  } catch {
    return 'The collector does not answer.';
  }
}

async function refreshFacts(): Promise<void> {
  try {
    const f = await json<Facts>('run');
    if (boot.value)
      boot.value = { ...boot.value, ...f };
  } catch {
    /* The link state says it already. */
  }
}

/* News comes up to four times a second; the header needs one answer a second. */
function factsSoon(): void {
  facts_timer ??= setTimeout(() => {
    facts_timer = undefined;
    void refreshFacts();
  }, 300);
}

function onStep(step: number): void {
  const b = boot.value;
  if (!b || !Number.isSafeInteger(step) || step < 0)
    return;
  const s = state.value, follows = following.value;
  const axes = { ...b.axes, first_step: b.axes.first_step ?? step, last_step: Math.max(b.axes.last_step ?? step, step) };
  batch(() => {
    tiles.expire();
    boot.value = { ...b, axes, live: { ...b.live, step: Math.max(b.live.step ?? step, step) } };
    step_news.value = step;
    if (follows && s.steps && axes.last_step > s.steps.hi)
      go({ steps: { lo: s.steps.lo + axes.last_step - s.steps.hi, hi: axes.last_step } });
    tiles_changed.value++;
  });
  if (b.axes.n_ranks === 0 || b.live.state === 'snapshot')
    void load(); /* a file that was loaded again: findings and clocks too */
}

function onNews(n: News): void {
  switch (n.event) {
  case 'up':
    if (link.value === 'down')
      void load(); /* a gap: everything may have changed */
    link.value = n.data.polling ? 'polling' : 'up';
    break;
  case 'down':
    if (link.value !== 'down')
      down_since_ms.value = Date.now();
    link.value = 'down';
    break;
  case 'step':
    onStep(Number(n.data.step));
    factsSoon();
    break;
  case 'finding':
    void json<{ findings: Finding[] }>('findings').then((f) => { findings.value = f.findings; }, () => undefined);
    break;
  case 'rank':
  case 'drop':
  case 'clock':
  case 'bye':
    factsSoon();
    break;
  case 'reset':
    tiles.clear();
    void load();
    break;
  }
}

let started = false;

export function start(): void {
  void load();
  if (started)
    return;
  started = true;
  if (isKept()) {
    link.value = 'up';
    return;
  }
  follow(API, onNews);
  setInterval(() => {
    now_ms.value = Date.now();
    if (document.visibilityState === 'visible' && boot.value && boot.value.live.state !== 'snapshot')
      factsSoon();
  }, 2000);
}
