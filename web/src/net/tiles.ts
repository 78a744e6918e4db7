/* tiles.ts - the heatmap tiles that are here, on the way, or due again.
 *
 * A sealed tile never changes. An open one is shown while its successor is
 * fetched, so that following a live run never blanks the picture. Only what the
 * last picture asked for is fetched; older wishes are dropped.
 */

import { ask, Problem } from './api';
import { decodeTile, Tile } from '../lib/tile';

const MAX_TILES = 1000; /* 64 kB each */
const MAX_FLIGHTS = 4;
const RETRY_MS = 2000;

interface Entry {
  tile: Tile | null; /* null: the collector has no data there */
  stale: boolean;
}

export class TileCache {
  private entries = new Map<string, Entry>(); /* oldest use first */
  private flights = new Set<string>();
  private wanted: string[] = [];
  private failed_at = 0;
  private generation = 0;
  problem: Problem | null = null;

  constructor(private readonly changed: () => void) {}

  get n_pending(): number {
    return this.wanted.length + this.flights.size;
  }

  peek(key: string): Tile | null | undefined {
    const e = this.entries.get(key);
    if (!e)
      return undefined;
    this.entries.delete(key);
    this.entries.set(key, e);
    return e.tile;
  }

  /* What the picture needs now, most important first. */
  want(keys: string[]): void {
    this.wanted = keys.filter((k) => this.entries.get(k)?.stale !== false && !this.flights.has(k));
    this.fly();
  }

  /* Something changed in the run: open tiles are old, and shown until replaced. */
  expire(): void {
    this.generation++;
    for (const e of this.entries.values())
      e.stale ||= !e.tile?.sealed;
  }

  clear(): void {
    this.entries.clear();
    this.wanted = [];
  }

  private fly(): void {
    if (this.problem && Date.now() - this.failed_at < RETRY_MS)
      return;
    while (this.flights.size < MAX_FLIGHTS && this.wanted.length > 0)
      void this.fetch(this.wanted.shift()!);
  }

  private async fetch(key: string): Promise<void> {
    this.flights.add(key);
    const generation = this.generation;
    const put = (tile: Tile | null): void =>
      this.put(key, { tile, stale: generation !== this.generation && !tile?.sealed });
    try {
      const r = await ask(`heat/${key}`, this.entries.has(key) ? { cache: 'no-cache' } : {});
      put(r.status === 204 ? null : decodeTile(await r.arrayBuffer()));
      this.problem = null;
    } catch (e) {
      if (e instanceof Problem && e.status === 404) {
        put(null);
      } else {
        this.failed_at = Date.now();
        this.problem = e instanceof Problem ? e : new Problem(0, 'A heatmap tile cannot be read', String(e), '');
        setTimeout(this.changed, RETRY_MS);
      }
    }
    this.flights.delete(key);
    this.fly();
    this.changed();
  }

  private put(key: string, e: Entry): void {
    this.entries.delete(key);
    this.entries.set(key, e);
    for (const old of this.entries.keys()) {
      if (this.entries.size <= MAX_TILES)
        break;
      this.entries.delete(old);
    }
  }
}
