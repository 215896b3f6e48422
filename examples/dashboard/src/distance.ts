import { type Load, measure, type Way } from './measure.ts';

/** What went over the line, heads included: `scripts/distance.ts` has counted it. */
interface Carried {
  readonly requests: number;
  readonly preflights: number;
  readonly up: number;
  readonly down: number;
}

export type Measured = Load & Carried;

/** Where the gateway is, seen from the page: behind its own origin, or on one of its own. */
export type Place = 'page' | 'gateway';

async function ask<T>(method: string, name: string | number): Promise<T> {
  const response = await fetch(`/_distance/${name}`, { method });
  if (!response.ok) throw new Error('There is no line to measure on: `npm run example` has one.');
  return (await response.json()) as T;
}

/** Each over a line of its own, which no browser knows yet: no connection and no preflight is left from the last time. */
export async function measureFrom(place: Place, way: Way): Promise<Measured> {
  const { port } = await ask<{ readonly port: number }>('POST', place);
  try {
    const origin = `http://127.0.0.1:${port}`;
    const carried = () => ask<Carried>('GET', port);
    return await (place === 'page'
      ? withinFarPage(origin, way, carried)
      : counted(() => measure(way, origin), carried));
  } finally {
    await ask('DELETE', port);
  }
}

async function counted(run: () => Promise<Load>, carried: () => Promise<Carried>): Promise<Measured> {
  const before = await carried();
  const load = await run();
  const after = await carried();
  return {
    ...load,
    requests: after.requests - before.requests,
    preflights: after.preflights - before.preflights,
    up: after.up - before.up,
    down: after.down - before.down,
  };
}

/** Loads a small page over the line, and has it measure: to it, the line leads to its own origin. */
async function withinFarPage(origin: string, way: Way, carried: () => Promise<Carried>): Promise<Measured> {
  const frame = document.createElement('iframe');
  frame.hidden = true;
  frame.src = `${origin}/far.html`;
  const said = <T>() =>
    new Promise<T>((resolve) => {
      const listen = (event: MessageEvent<T>) => {
        if (event.source !== frame.contentWindow) return;
        window.removeEventListener('message', listen);
        resolve(event.data);
      };
      window.addEventListener('message', listen);
    });
  const ready = said();
  document.body.append(frame);
  try {
    await ready;
    return await counted(async () => {
      const answer = said<Load | string>();
      frame.contentWindow?.postMessage(way, origin);
      const load = await answer;
      if (typeof load === 'string') throw new Error(load);
      return load;
    }, carried);
  } finally {
    frame.remove();
  }
}
