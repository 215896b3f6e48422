import { describe, expect, onTestFinished, test } from 'vitest';
import { worker } from '../../src/entry/worker/serve.ts';
import { exampleRequest } from '../support/examples.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { json, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { portico } from '../../src/portico.ts';
import { overviews, proxyAccount } from '../../src/proxy-account/index.ts';

/** What becomes of every call of every object. */
const AWAY: Readonly<Record<string, () => Promise<never>>> = {
  fail: () => Promise.reject(new Error('away')),
  hang: () => new Promise(() => {}),
};

const GIVEN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'with SECRETS': { SECRETS: 'for-development-only-and-known-to-all' },
  'without SECRETS': {},
};

const cases = Object.keys(AWAY).flatMap((how) => Object.keys(GIVEN).map((secrets) => [how, secrets] as const));

/** An isolate whose objects answer every method with `answer`. */
async function isolate(answer: (method: string) => Promise<unknown>, vars: Readonly<Record<string, string>> = {}) {
  const upstream = await startUpstream();
  onTestFinished(async () => {
    await upstream.close();
    upstream.assertNoUnexpected();
  });
  const asked: string[] = [];
  const stub = new Proxy({}, { get: (_, method) => () => answer(asked[asked.push(String(method)) - 1] ?? '') });
  const started = worker((options) => portico({ ...options, rows: proxyAccount, overviews }).app);
  const env = {
    UPSTREAM_BASE_URL: upstream.url,
    ACCOUNTS: { idFromName: (name: string) => name, get: () => stub },
    ...vars,
  };
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = { Authorization: `Token ${secret()}`, 'Content-Type': 'application/json' };
    const request = new Request(`http://portico.test${path}`, { headers, ...init });
    // The binding has more methods, which are not called here.
    return started.fetch(request, env as never, { waitUntil() {}, passThroughOnException() {}, props: {} });
  };
  return { upstream, ask, asked };
}

describe.each(cases)('while all objects %s, %s', (how, secrets) => {
  test('an isolate lives, reads, and refuses what needs the store before anything is sent', async () => {
    const { upstream, ask } = await isolate(AWAY[how]!, GIVEN[secrets]);
    expect((await ask('/livez')).status).toBe(200);
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)));
    const read = await ask(exampleRequest('getSubscription').path);
    expect([read.status, await read.text()]).toEqual([200, bodyOf('getSubscription', 1)]);
    const { path, method, body = '' } = exampleRequest('purchasePlan');
    const purchase = await ask(path, { method, body });
    expect([purchase.status, await purchase.json()]).toMatchObject([503, { code: 'store_unavailable' }]);
    expect(upstream.calls.map(({ path: called }) => called)).toEqual([exampleRequest('getSubscription').path]);
  });
});

test('the secret that an object keeps is asked for until it comes, and then no more', async () => {
  let isAway = true;
  const { ask, asked } = await isolate(async () => {
    if (isAway) throw new Error('away');
    return 'a secret that the object has made itself';
  });
  for (const away of [true, false, false]) {
    isAway = away;
    expect((await ask('/livez')).status).toBe(200);
  }
  expect(asked).toEqual(['secret', 'secret']);
});
