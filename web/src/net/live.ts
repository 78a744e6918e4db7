/* live.ts - news from the collector: server-sent events, else polling.
 *
 * Browsers open at most six connections to a host over HTTP/1.1, so several
 * tabs with a stream each would starve themselves: a SharedWorker holds one
 * stream for all of them (live-worker.ts). Where there is none, a tab holds its
 * own. Some proxies swallow or collect event streams; when no hello arrives in
 * time, or the stream fails three times in a row, the same events are polled.
 */

export interface News { event: string; data: Record<string, unknown> }
export type Sink = (news: News) => void;

const KINDS = ['hello', 'step', 'finding', 'rank', 'drop', 'clock', 'reset', 'bye'];
const HELLO_MS = 5000;
const POLL_MS = 2000;
const MAX_FAILURES = 3;

function parse(text: string): Record<string, unknown> {
  try {
    const v: unknown = JSON.parse(text);
    return typeof v === 'object' && v !== null ? v as Record<string, unknown> : {};
  } catch {
    return {};
  }
}

export function listen(api: string, sink: Sink, poll_only = false): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let cursor = 0, etag = '', n_failures = 0, closed = false;

  const poll = async (): Promise<void> => {
    try {
      const r = await fetch(`${api}since?cursor=${cursor}`,
                            { credentials: 'same-origin', headers: etag ? { 'If-None-Match': etag } : {} });
      if (r.status === 200) {
        etag = r.headers.get('ETag') ?? '';
        const a = await r.json() as { cursor: number; events: { event: string; data: unknown }[]; reset: boolean };
        cursor = a.cursor;
        if (a.reset)
          sink({ event: 'reset', data: {} });
        for (const e of a.events)
          sink({ event: e.event, data: typeof e.data === 'string' ? parse(e.data) : e.data as Record<string, unknown> });
      }
      sink({ event: r.ok || r.status === 304 ? 'up' : 'down', data: { polling: true } });
    } catch {
      sink({ event: 'down', data: { polling: true } });
    }
    if (!closed)
      timer = setTimeout(poll, POLL_MS);
  };
  const fall_back = (): void => {
    source?.close();
    source = null;
    clearTimeout(timer);
    if (!closed)
      void poll();
  };
  const stream = (): void => {
    let greeted = false;
    source = new EventSource(`${api}events`);
    timer = setTimeout(() => { if (!greeted) fall_back(); }, HELLO_MS);
    for (const kind of KINDS) {
      source.addEventListener(kind, (e) => {
        greeted = true;
        n_failures = 0;
        cursor = Number((e as MessageEvent).lastEventId) || cursor;
        const data = parse((e as MessageEvent<string>).data);
        if (kind === 'hello') {
          cursor = Number(data.cursor) || cursor;
          sink({ event: 'up', data: {} });
        }
        sink({ event: kind, data });
      });
    }
    source.onerror = () => {
      sink({ event: 'down', data: {} });
      if (source && source.readyState !== EventSource.CLOSED && ++n_failures < MAX_FAILURES)
        return; /* the browser connects again by itself and resumes */
      fall_back();
    };
  };

  if (poll_only || typeof EventSource === 'undefined')
    void poll();
  else
    stream();
  return () => {
    closed = true;
    source?.close();
    clearTimeout(timer);
  };
}

/* One stream for all tabs where the browser can. */
export function follow(api: string, sink: Sink): void {
  if (new URLSearchParams(location.search).get('live') === 'poll') {
    listen(api, sink, true);
    return;
  }
  if (typeof SharedWorker !== 'undefined') {
    try {
      const w = new SharedWorker(new URL('./live-worker.ts', import.meta.url), { type: 'module', name: api });
      let heard = false;
      w.port.onmessage = (e: MessageEvent<News>) => {
        heard = true;
        sink(e.data);
      };
      w.onerror = () => { if (!heard) { heard = true; listen(api, sink); } };
      w.port.start();
      w.port.postMessage('join');
      return;
    } catch {
      /* Refused (a policy, private mode): this tab listens for itself. */
    }
  }
  listen(api, sink);
}
