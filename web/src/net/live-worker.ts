/* live-worker.ts - the one stream that all tabs of a browser share.
 *
 * The worker's name is the address of the API. It ends with the last tab; a tab
 * that is gone only costs a message nobody reads.
 */

import { listen, News } from './live';

const scope = self as unknown as { name: string; onconnect: ((e: MessageEvent) => void) | null };
const ports: MessagePort[] = [];
let link: News | null = null; /* up or down: what a new tab has to know */
let started = false;

scope.onconnect = (e) => {
  const port = e.ports[0]!;
  ports.push(port);
  port.start();
  if (link)
    port.postMessage(link);
  if (started)
    return;
  started = true;
  listen(scope.name, (news) => {
    if (news.event === 'up' || news.event === 'down')
      link = news;
    for (const p of ports)
      p.postMessage(news);
  });
};
