/* hash.ts - the whole state of the page as a link, and back.
 *
 *   #/heat?m=self&b=peers&a=max&c=20&r=0-3&s=0-200&sel=r2,s48&live=0&table=1
 *
 * A link may come from anyone: unknown keys are ignored, numbers are limited
 * before they are used, and what does not parse is the default.
 */

export type View = 'now' | 'heat' | 'step';
export interface Range { lo: number; hi: number } /* both ends belong to it */

export interface State {
  view: View;
  metric: string;
  baseline: string;
  agg: string;
  contrast: number | null; /* ± per cent at the end of the scale; null = from the data */
  ranks: Range | null; /* null = all */
  steps: Range | null;
  rank: number | null; /* the selection, shared by all views */
  step: number | null;
  live: boolean; /* follow the newest step */
  table: boolean;
}

export const MAX_RANK = 65535;
export const MAX_STEP = 4294967293;

export const DEFAULT: State = {
  view: 'now', metric: 'self', baseline: 'peers', agg: 'max', contrast: null, ranks: null,
  steps: null, rank: null, step: null, live: true, table: false,
};

const VIEWS: readonly string[] = ['now', 'heat', 'step'];

function parseCount(text: string, max: number): number | null {
  if (!/^\d{1,10}$/.test(text))
    return null;
  const n = Number(text);
  return n <= max ? n : null;
}

function parseRange(text: string | null, max: number): Range | null {
  const m = /^(\d{1,10})-(\d{1,10})$/.exec(text ?? '');
  if (!m)
    return null;
  const a = parseCount(m[1]!, max), b = parseCount(m[2]!, max);
  return a === null || b === null ? null : { lo: Math.min(a, b), hi: Math.max(a, b) };
}

function parseWord(text: string | null, fallback: string): string {
  return text !== null && /^[a-z_]{1,24}$/.test(text) ? text : fallback;
}

export function parseHash(hash: string): State {
  const s: State = { ...DEFAULT };
  const m = /^#?\/?([a-z]*)(?:\?(.*))?$/.exec(hash.slice(0, 2048));
  if (!m)
    return s;
  if (VIEWS.includes(m[1]!))
    s.view = m[1] as View;
  const q = new URLSearchParams(m[2] ?? '');
  s.metric = parseWord(q.get('m'), s.metric);
  s.baseline = parseWord(q.get('b'), s.baseline);
  s.agg = parseWord(q.get('a'), s.agg);
  const c = parseCount(q.get('c') ?? '', 400);
  s.contrast = c === null || c === 0 ? null : c;
  s.ranks = parseRange(q.get('r'), MAX_RANK);
  s.steps = parseRange(q.get('s'), MAX_STEP);
  for (const part of (q.get('sel') ?? '').split(',')) {
    if (part.startsWith('r'))
      s.rank = parseCount(part.slice(1), MAX_RANK);
    else if (part.startsWith('s'))
      s.step = parseCount(part.slice(1), MAX_STEP);
  }
  s.live = q.get('live') !== '0';
  s.table = q.get('table') === '1';
  return s;
}

/* Only what differs from the default, in a fixed order: equal states are equal links. */
export function formatHash(s: State): string {
  const q: string[] = [];
  if (s.metric !== DEFAULT.metric || s.view === 'heat')
    q.push(`m=${s.metric}`);
  if (s.baseline !== DEFAULT.baseline || s.view === 'heat')
    q.push(`b=${s.baseline}`);
  if (s.agg !== DEFAULT.agg)
    q.push(`a=${s.agg}`);
  if (s.contrast !== null)
    q.push(`c=${s.contrast}`);
  if (s.ranks)
    q.push(`r=${s.ranks.lo}-${s.ranks.hi}`);
  if (s.steps)
    q.push(`s=${s.steps.lo}-${s.steps.hi}`);
  const sel = [s.rank === null ? '' : `r${s.rank}`, s.step === null ? '' : `s${s.step}`].filter(Boolean);
  if (sel.length > 0)
    q.push(`sel=${sel.join(',')}`);
  if (!s.live)
    q.push('live=0');
  if (s.table)
    q.push('table=1');
  return `#/${s.view}${q.length > 0 ? `?${q.join('&')}` : ''}`;
}
