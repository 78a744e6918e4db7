/* kept.ts - a page that carries its answers.
 *
 * An exported run is this page with a collector's answers in it, so that it opens from
 * a file. What it was not given is answered as a collector answers for what it does
 * not have: with a sentence.
 */

interface Kept {
  about: string; /* what was exported, in words */
  answers: Record<string, string>; /* by path: JSON text, or base64 of octets behind "@" */
}

let unpacked: Promise<Kept> | null = null;

export function isKept(): boolean {
  return document.getElementById('kept') !== null;
}

function octets(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64), v = new Uint8Array(new ArrayBuffer(text.length));
  for (let i = 0; i < text.length; i++)
    v[i] = text.charCodeAt(i);
  return v;
}

async function unpack(): Promise<Kept> {
  const packed = octets(document.getElementById('kept')!.textContent.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return await new Response(stream).json() as Kept;
}

function problem(about: string): Response {
  return new Response(JSON.stringify({
    title: 'Not in this file', detail: `It was exported with ${about}.`,
    hint: 'Export it again with more steps, or open the database with: syncline serve.',
  }), { status: 404, headers: { 'Content-Type': 'application/problem+json' } });
}

/* The card of one rank in one step is part of what is kept of the step. */
function cell(kept: Kept, query: URLSearchParams): string | undefined {
  const step = Number(query.get('step')), rank = Number(query.get('rank'));
  const text = kept.answers[`step/${step}`];
  if (text === undefined)
    return undefined;
  const found = (JSON.parse(text) as { ranks: { rank: number }[] }).ranks.find((r) => r.rank === rank);
  return found && JSON.stringify({ step, ...found });
}

export async function keptAnswer(path: string): Promise<Response> {
  const kept = await (unpacked ??= unpack());
  const [name, query] = path.split('?') as [string, string | undefined];
  const text = name === 'cell' ? cell(kept, new URLSearchParams(query)) : kept.answers[name];
  if (text === undefined)
    return problem(kept.about);
  return text.startsWith('@') ? new Response(octets(text.slice(1))) : new Response(text);
}
