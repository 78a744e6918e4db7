/* keys.ts - the whole page by keyboard. Single letters can be switched off. */

import { signal } from '@preact/signals';
import {
  all_ranks, all_steps, findings, flush, following, go, has_steps, help_open, said, select, setSteps, shift, shown_ranks, shown_steps,
  state, zoom,
} from './state';
import { Range } from './lib/hash';
import type { Finding } from './net/api';

export const keys_on = signal(readSwitch());

function readSwitch(): boolean {
  try {
    return localStorage.getItem('syncline.keys') !== 'off';
  } catch {
    return true; /* storage is refused: the default */
  }
}

export function setKeysOn(on: boolean): void {
  keys_on.value = on;
  try {
    localStorage.setItem('syncline.keys', on ? 'on' : 'off');
  } catch {
    /* for this tab only, then */
  }
}

export function copyLink(): void {
  flush();
  const done = (ok: boolean): void => { said.value = ok ? 'Link copied.' : 'The browser refused to copy; the address bar has the link.'; };
  if (navigator.clipboard) {
    navigator.clipboard.writeText(location.href).then(() => done(true), () => done(byHand()));
    return;
  }
  done(byHand());
}

/* Over plain HTTP from another host there is no clipboard API. */
function byHand(): boolean {
  const t = document.createElement('textarea');
  t.value = location.href;
  document.body.append(t);
  t.select();
  const ok = document.execCommand('copy');
  t.remove();
  return ok;
}

/* Where a finding is on the heatmap: its rank and its first step, with what came before. */
export function placeOf(v: Finding): { rank: number | null; step: number | null; steps: Range | null; ranks: null } {
  const rank = v.culprit?.ranks?.[0] ?? v.evidence?.find((e) => typeof e.rank === 'number')?.rank ?? null;
  const step = v.first_step ?? v.evidence?.find((e) => typeof e.step === 'number')?.step ?? null;
  const all = all_steps.value;
  let steps: Range | null = null;
  if (step !== null && all.hi - all.lo > 400)
    steps = shift({ lo: step - 100, hi: step + 299 }, 0, all);
  return { rank, step, steps, ranks: null };
}

let at_finding = -1;

function finding(by: number): void {
  const list = findings.value;
  if (list.length === 0) {
    said.value = 'No findings.';
    return;
  }
  at_finding = (at_finding + by + list.length) % list.length;
  const v = list[at_finding]!;
  go(placeOf(v));
  said.value = v.sentence;
  document.getElementById(`finding-${at_finding}`)?.focus();
}

function pan(dx: number, dy: number): void {
  const s = shown_steps.value, r = shown_ranks.value;
  if (dx !== 0 && state.value.steps)
    setSteps(shift(s, dx * Math.max(1, Math.round((s.hi - s.lo) / 8)), all_steps.value));
  if (dy !== 0 && state.value.ranks)
    go({ ranks: shift(r, dy * Math.max(1, Math.round((r.hi - r.lo) / 8)), all_ranks.value) });
}

function zoomBy(factor: number): void {
  const s = shown_steps.value, sel = state.value.step;
  const at = sel !== null && sel >= s.lo && sel <= s.hi ? (sel - s.lo + 0.5) / (s.hi - s.lo + 1) : 0.5;
  setSteps(zoom(s, factor, at, all_steps.value, 8));
}

function moveStep(by: number): void {
  const s = state.value, all = all_steps.value;
  const from = s.step ?? (by > 0 ? shown_steps.value.lo - 1 : shown_steps.value.hi + 1);
  select(s.rank, Math.max(all.lo, Math.min(all.hi, from + by)));
}

function moveRank(by: number): void {
  const s = state.value, all = all_ranks.value;
  const from = s.rank ?? (by > 0 ? shown_ranks.value.lo - 1 : shown_ranks.value.hi + 1);
  select(Math.max(all.lo, Math.min(all.hi, from + by)), s.step);
}

function up(): void {
  const s = state.value;
  if (s.view === 'step')
    go({ view: 'heat' });
  else if (s.rank !== null || s.step !== null)
    select(null, null);
  else
    go({ view: 'now' });
}

export function toggleLive(): void {
  const s = state.value;
  if (following.value) {
    go({ live: false, steps: shown_steps.value });
    said.value = 'Not following.';
  } else {
    go({ live: true, steps: s.steps && shift(s.steps, all_steps.value.hi, all_steps.value) });
    said.value = 'Following the newest step.';
  }
}

function focusSelection(): void {
  const s = state.value;
  if (s.step === null)
    return;
  go({ view: 'heat', steps: shift({ lo: s.step - 20, hi: s.step + 20 }, 0, all_steps.value) });
}

function menu(id: string): void {
  if (state.value.view !== 'heat')
    go({ view: 'heat' });
  setTimeout(() => document.getElementById(id)?.focus(), 0);
}

const VERBS: Record<string, () => void> = {
  '+': () => zoomBy(0.5), '=': () => zoomBy(0.5), '-': () => zoomBy(2), '0': () => go({ steps: null, ranks: null }),
  '.': () => moveStep(1), ',': () => moveStep(-1), ']': () => moveRank(1), '[': () => moveRank(-1),
  a: () => pan(-1, 0), d: () => pan(1, 0), w: () => pan(0, -1), s: () => pan(0, 1),
  j: () => finding(1), k: () => finding(-1), l: toggleLive, f: focusSelection, y: copyLink,
  m: () => menu('metric'), b: () => menu('baseline'), o: () => menu('agg'),
  t: () => go({ view: 'heat', table: !state.value.table }), '?': () => { help_open.value = true; },
};
const PLACES: Record<string, 'now' | 'heat' | 'step'> = { n: 'now', h: 'heat', s: 'step' };

let went_at_ms = 0;

export function installKeys(): void {
  document.addEventListener('keydown', (e) => {
    const el = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || help_open.value || /^(INPUT|SELECT|TEXTAREA)$/.test(el.tagName) || !has_steps.value)
      return;
    const act = (verb: () => void): void => {
      e.preventDefault();
      verb();
    };
    switch (e.key) {
    case 'Escape': return act(up);
    case 'Enter':
      /* A link or button that has the focus keeps its own meaning. */
      if (/^(A|BUTTON|SUMMARY)$/.test(el.tagName) || state.value.step === null)
        return;
      return act(() => go({ view: 'step' }));
    case 'ArrowLeft': case 'ArrowRight': case 'ArrowUp': case 'ArrowDown':
      if (state.value.view !== 'heat')
        return;
      return act(() => pan(e.key === 'ArrowLeft' ? -1 : e.key === 'ArrowRight' ? 1 : 0,
                           e.key === 'ArrowUp' ? -1 : e.key === 'ArrowDown' ? 1 : 0));
    }
    if (!keys_on.value)
      return;
    if (went_at_ms > 0 && e.timeStamp - went_at_ms < 1500 && PLACES[e.key]) {
      went_at_ms = 0;
      return act(() => go({ view: PLACES[e.key]! }));
    }
    went_at_ms = e.key === 'g' ? e.timeStamp : 0;
    const verb = VERBS[e.key];
    if (verb)
      act(verb);
  });
}
