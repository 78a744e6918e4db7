/* format.ts - numbers as people read them, always with a unit.
 *
 * Three significant digits; a thin no-break space before the unit. What is not
 * known reads "unknown", never 0.
 */

const SP = '\u202f';

function digits(v: number): string {
  const a = Math.abs(v);
  return a >= 100 ? v.toFixed(0) : a >= 10 ? v.toFixed(1) : v.toFixed(2);
}

export function known(v: number | null | undefined): v is number {
  return typeof v === 'number' && Number.isFinite(v);
}

export function duration(ns: number | null | undefined): string {
  if (!known(ns))
    return 'unknown';
  const a = Math.abs(ns);
  if (a < 999.5)
    return `${ns.toFixed(0)}${SP}ns`;
  if (a < 999.5e3)
    return `${digits(ns / 1e3)}${SP}µs`;
  if (a < 999.5e6)
    return `${digits(ns / 1e6)}${SP}ms`;
  if (a < 120e9)
    return `${digits(ns / 1e9)}${SP}s`;
  const s = Math.round(a / 1e9), sign = ns < 0 ? '-' : '';
  if (s < 7200)
    return `${sign}${Math.floor(s / 60)}${SP}min${SP}${s % 60}${SP}s`;
  return `${sign}${Math.floor(s / 3600)}${SP}h${SP}${Math.floor((s % 3600) / 60)}${SP}min`;
}

/* "68.2 ms ± 3.1 µs": a value that depends on a clock never stands alone. */
export function bounded(ns: number | null | undefined, err_ns: number | null | undefined): string {
  return known(ns) && known(err_ns) ? `${duration(ns)} ± ${duration(err_ns)}` : duration(ns);
}

export function signed_ratio(ratio: number | null | undefined): string {
  if (!known(ratio))
    return 'unknown';
  const p = ratio * 100, a = Math.abs(p);
  const text = a >= 100 ? a.toFixed(0) : a.toFixed(1);
  return `${text === '0.0' ? '' : p > 0 ? '+' : '−'}${text}${SP}%`;
}

export function share(ratio: number | null | undefined): string {
  if (!known(ratio))
    return 'unknown';
  const p = ratio * 100;
  if (p > 0 && p < 0.1)
    return `<${SP}0.1${SP}%`;
  return `${p >= 99.95 || p === 0 ? p.toFixed(0) : p.toFixed(1)}${SP}%`;
}

export function count(n: number | null | undefined): string {
  if (!known(n))
    return 'unknown';
  return Math.round(n).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function bytes(n: number | null | undefined): string {
  if (!known(n))
    return 'unknown';
  if (n < 1024)
    return `${n}${SP}B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let v = n / 1024, i = 0;
  while (v >= 1023.5 && i < units.length - 1) {
    v /= 1024;
    i++;
  }
  return `${digits(v)}${SP}${units[i]}`;
}

/* Instants are decimal strings: a double cannot hold them. */
export function between_ns(from: string | null | undefined, to: string | null | undefined): number | null {
  if (!from || !to || !/^-?\d{1,19}$/.test(from) || !/^-?\d{1,19}$/.test(to))
    return null;
  return Number(BigInt(to) - BigInt(from));
}

export function instant(ns: string | null | undefined): string {
  if (!ns || !/^\d{1,19}$/.test(ns))
    return 'unknown';
  const d = new Date(Number(BigInt(ns) / 1000000n));
  const two = (n: number) => n.toString().padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ` +
    `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/* 0, 2, 5 × 10^n marks inside lo..hi, at most n_max of them, whole numbers only. */
export function ticks(lo: number, hi: number, n_max: number): number[] {
  const span = Math.max(1, hi - lo);
  let step = 1;
  for (let i = 0; span / step > n_max; i++)
    step = [2, 5, 10][i % 3]! * 10 ** Math.floor(i / 3);
  const out: number[] = [];
  for (let v = Math.ceil(lo / step) * step; v <= hi; v += step)
    out.push(v);
  return out;
}
