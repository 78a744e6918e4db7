/* api.ts - what docs/api.md promises, as types, and one way to ask for it. */

import { isKept, keptAnswer } from './kept';

export interface Run {
  run_id: string; name: string | null; world_size: number | null;
  started_ns: string | null; ended_ns: string | null;
}

export interface Live {
  state: 'waiting' | 'live' | 'stale' | 'ended' | 'snapshot';
  now_ns: string; last_event_ns: string | null; step: number | null; step_ns: number | null;
  n_ranks: number; n_agents: number; listen: string | null;
}

export interface Coverage {
  ranks_expected: number | null; ranks_seen: number; events: number; events_lost: number; drops: number;
  /* Most of the gradient sync is invisible to the probe: silence about slow ranks proves nothing. */
  collectives_hidden?: boolean;
}

export interface Clock { error_ns: number | null; hosts: number; unaligned: number }
export interface Overhead { agent_cpu_ratio: number | null; known: boolean }

export interface Evidence { view?: string; step?: number; rank?: number }

export interface Finding {
  id: number | string; class: string;
  severity: 'stuck' | 'wrong' | 'slow' | 'notice';
  confidence: 'certain' | 'likely' | 'too_close' | 'insufficient';
  culprit: { ranks?: number[]; host?: string; group?: string; detail?: string } | null;
  sentence: string; evidence: Evidence[] | null; rules_out: unknown[] | null;
  first_step: number | null; last_step: number | null; onset_ns: string | null;
  cost_ratio: number | null; margin_ns: number | null; error_ns: number | null; error_kind?: string;
}

export interface Facts { run: Run; live: Live; coverage: Coverage; clock?: Clock; overhead?: Overhead }

export interface Boot extends Facts {
  clock: Clock; overhead: Overhead;
  axes: { first_step: number | null; last_step: number | null; n_ranks: number };
  heat: { rev: number; metrics: string[]; baselines: string[]; aggs: string[] };
  findings: Finding[]; cursor: number; version: string;
}

export interface StepRow {
  step: number; begin_ns: string | null; dur_ns: number | null; dur_err_ns: number | null;
  n_ranks: number; slowest_rank: number | null; complete: boolean | number;
}

export interface RankStep {
  rank: number; begin_ns: string | null; dur_ns: number | null; self_ns: number | null;
  wait_ns: number | null; wait_err_ns: number | null; exposed_comm_ns: number | null;
  input_wait_ns: number | null; fwd_ns: number | null; bwd_ns: number | null; opt_ns: number | null;
  eval_ns: number | null; excess_ratio: number | null; coverage: number | null;
}

export interface Cell extends RankStep { step: number; begin_err_ns?: number | null; peers?: number | null }

export interface Arrival {
  rank: number; arrival_ns: string | null; arrival_err_ns: number | null;
  wait_ns: number | null; dur_ns: number | null;
}

export interface Collective {
  comm_id: string; seq: number; op: string; dtype: string; bytes: number;
  skew_ns: number | null; skew_err_ns: number | null; last_rank: number | null;
  decided: boolean | number; arrivals: Arrival[];
}

export interface Bucket {
  rank: number; bucket: number; micro: number; bytes: number;
  ready_ns: string | null; submitted_ns: string | null; started_ns: string | null;
  reduced_ns: string | null; applied_ns: string | null;
}

export interface StepDetail { step: StepRow; ranks: RankStep[]; collectives: Collective[]; buckets: Bucket[] }

/* What failed, for a person. status 0: nobody answered. */
export class Problem extends Error {
  constructor(readonly status: number, readonly title: string, readonly detail: string,
              readonly hint: string, readonly retry_s: number | null = null) {
    super(detail ? `${title}: ${detail}` : title);
  }

  /* The collector is there and says when to ask again: no failure yet. */
  get not_yet(): boolean {
    return this.status === 503 && this.retry_s !== null;
  }
}

/* Relative to the page: it may live below a proxy's sub-path. */
export const API = new URL('api/v1/', document.baseURI.replace(/#.*$/, '')).href;

/* Whole seconds, never more than a minute; a date or nonsense is no promise. */
export function retryAfter(text: string | null): number | null {
  return text !== null && /^\d{1,9}$/.test(text) ? Math.min(60, Number(text)) : null;
}

export async function ask(path: string, init?: RequestInit): Promise<Response> {
  let r: Response;
  try {
    r = isKept() ? await keptAnswer(path) : await fetch(API + path, { credentials: 'same-origin', ...init });
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError')
      throw e;
    throw new Problem(0, 'The collector does not answer', '',
                      'Is it running, and is the tunnel to it open? This page tries again by itself.');
  }
  if (r.ok)
    return r;
  let title = r.statusText || `HTTP ${r.status}`, detail = '', hint = '';
  try {
    const p = await r.json() as Record<string, unknown>;
    title = typeof p.title === 'string' ? p.title : title;
    detail = typeof p.detail === 'string' ? p.detail : '';
    hint = typeof p.hint === 'string' ? p.hint : '';
  } catch {
    /* Not problem JSON: a proxy answered. The status says enough. */
  }
  throw new Problem(r.status, title, detail, hint, retryAfter(r.headers.get('Retry-After')));
}

export async function json<T>(path: string, init?: RequestInit): Promise<T> {
  const r = await ask(path, init);
  try {
    return await r.json() as T;
  } catch {
    throw new Problem(r.status, 'The answer is not JSON', path,
                      'A proxy between this page and the collector may have answered in its place.');
  }
}
