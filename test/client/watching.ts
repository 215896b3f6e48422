import { onTestFinished, vi } from 'vitest';
import { type ClientOptions, type Portico, type Retry, watchOverview } from '../../client/src/index.ts';
import { type Call, json, type Step } from '../support/scripted-upstream.ts';
import { holdPauses, openStandIn } from './helpers.ts';

const OVERVIEW = 'GET /bff/v1/account-overview';
export const SECOND_MS = 1000;
export const MINUTES_MS = 300_000;
export const WAITED = { 'preference-applied': 'wait=30' };
export const DELTA = { 'preference-applied': 'changed-sections, wait=30' };

const fresh = { state: 'fresh', age: 0 };
export const sectionsOf = (data: object, states: object = {}) => ({
  ...Object.fromEntries(Object.keys(data).map((name) => [name, fresh])),
  ...states,
});

/** A whole answer. */
export const whole = (etag: string, data: object, states?: object) =>
  json(200, { data, errors: [], meta: { complete: true, sections: sectionsOf(data, states) } }, { etag });
/** What has changed, beside what has not. */
export const changed = (etag: string, data: object, unchanged: readonly string[]) => {
  const sections = sectionsOf({ ...data, ...Object.fromEntries(unchanged.map((name) => [name, null])) });
  return json(200, { data, errors: [], meta: { complete: true, unchanged, sections } }, { etag, ...DELTA });
};
export const same = (headers: Record<string, string> = WAITED) => json(304, '', headers);

export const FIRST = { subscription: { plan: 1 }, notifications: { count: 0 } };

/** A watch whose pauses the test ends, at a clock that stands still. The gateway answers as told, the last thing again and again. */
export async function openWatch(answers: readonly Step[], options: ClientOptions = {}) {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const pauses = holdPauses();
  const standIn = await openStandIn(options);
  standIn.gateway.on(OVERVIEW, ...answers);
  const told: Retry[] = [];
  const controller = new AbortController();
  const { signal } = controller;
  const onRetry = (retry: Retry) => void told.push(retry);
  const start = (portico: Portico = standIn.portico) => watchOverview(portico, 'account-overview', { signal, onRetry });
  return { ...standIn, pauses, told, controller, start, watch: start() };
}

export type World = Awaited<ReturnType<typeof openWatch>>;

/** What it gives next. */
export const valueOf = async (watch: World['watch']) => {
  const { value, done } = await watch.next();
  if (done) throw new Error('it has ended');
  return value as { data: Record<string, object>; meta: { sections: Record<string, object> }; errors: object[] };
};
/** Takes all that it gives. */
export async function drained(watch: World['watch']): Promise<void> {
  for await (const _ of watch);
}
export const preferenceOf = ({ headers }: Call) => headers['prefer'];
/** Lets so many pauses pass, and says how long they were. */
export const passing = async ({ pauses }: World, count: number) => {
  const lengths: number[] = [];
  for (let number = 0; number < count; number += 1) {
    const { ms, end } = await pauses.next();
    lengths.push(ms);
    end();
  }
  return lengths;
};
