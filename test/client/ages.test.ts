import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { keepCopies } from '../../client/src/index.ts';
import { json } from '../support/scripted-upstream.ts';
import { openStandIn } from './helpers.ts';

const ETAG = '"1"';
const overview = (sections: object) => json(200, { data: {}, errors: [], meta: { sections } }, { etag: ETAG });
const fresh = (age: number) => ({ state: 'fresh', age });
const stale = (age: number, more: object = {}) => ({ state: 'stale', age, ...more });
const failed = { state: 'failed' };

/** An overview with these sections, and again so many seconds later, when the oldest is said to be that old. */
async function readTwice(sections: object, seconds: number, age?: string) {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const { gateway, clientWith } = await openStandIn();
  const portico = clientWith({ copies: keepCopies() });
  gateway.on(() => true, overview(sections), json(304, '', { etag: ETAG, ...(age && { age }) }));
  await portico.getAccountOverview();
  vi.advanceTimersByTime(seconds * 1000);
  return (await portico.getAccountOverview()).meta.sections as object;
}

describe('the age of a section in a copy that a 304 confirms', () => {
  test.for([
    ['has grown by the time that has passed', { a: fresh(3) }, 20, '23', { a: fresh(23) }],
    ['is never more than that of the oldest', { a: fresh(3), b: fresh(9) }, 60, '12', { a: fresh(12), b: fresh(12) }],
    [
      'is not that of the oldest where it cannot be',
      { a: fresh(1), b: stale(300, { code: 'upstream_timeout' }) },
      10,
      '310',
      { a: fresh(11), b: stale(310, { code: 'upstream_timeout' }) },
    ],
    ['has grown where the gateway does not say it', { a: fresh(3) }, 20, undefined, { a: fresh(23) }],
    ['says of a stale section that it was read again', { a: stale(50) }, 20, '4', { a: fresh(4) }],
    ['says of a stale section that it was not', { a: stale(50) }, 20, '70', { a: stale(70) }],
    ['is none where there was none', { a: fresh(0), b: failed }, 20, '20', { a: fresh(20), b: failed }],
  ] as const)('%s', async ([, sections, seconds, age, expected]) => {
    expect(await readTwice(sections, seconds, age)).toEqual(expected);
  });

  test('is nothing that other answers have', async () => {
    const { gateway, clientWith } = await openStandIn();
    const portico = clientWith({ copies: keepCopies() });
    const answer = { meta: { sections: { a: fresh(3) } } };
    gateway.on(() => true, json(200, answer, { etag: ETAG }), json(304, '', { etag: ETAG, age: '1' }));
    await portico.getSubscription();
    expect(await portico.getSubscription()).toEqual(answer);
  });
});
