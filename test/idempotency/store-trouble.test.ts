import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/core/errors.ts';
import type { Store } from '../../src/store/port.ts';
import { gist, good, goodGist, IN_PROGRESS, openShop } from './helpers.ts';
import { manualClock } from '../support/clock.ts';
import { json, reset } from '../support/scripted-upstream.ts';
import { memoryStore } from '../support/stores.ts';

const ID = 'purchasePlan';

/** Stores that are gone from one call to the next. What is the end of a write they hear later, or not at all. */
const GONE = {
  beginWrite: () =>
    Promise.resolve({ use: undefined, refusal: GatewayError.of('store_unavailable', { retryAfter: 1 }) }),
  endWrite: () => Promise.resolve(),
};

const failing = (name: keyof typeof GONE): Store => Object.assign(memoryStore(manualClock()), { [name]: GONE[name] });

test.each([
  ['with a key', true],
  ['without one', false],
])('a purchase %s that no record can be made of is not sent', async (_, hasKey) => {
  const shop = await openShop({}, { store: failing('beginWrite') });
  expect(gist(await (hasKey ? shop.keyed(ID) : shop.ask(ID)))).toBe('503 store_unavailable');
  expect(shop.upstream.calls).toEqual([]);
});

/** The client is told what the upstream said, not what became of our record of it. */
describe('when the store is gone after a purchase was sent', () => {
  test.each([
    ['the answer', good(ID, 1), goodGist(ID, 1)],
    ['that the outcome is not known', reset(), '502 upstream_unreachable unknown'],
    ['the refusal', json(400, '[{"message":"No.","code":"card_declined"}]'), '400 card_declined'],
  ])('its client gets %s, and its key sends it no more', async (_, step, seen) => {
    const shop = await openShop({}, { store: failing('endWrite') });
    shop.script(ID, step);
    expect(gist(await shop.keyed(ID))).toBe(seen);
    expect(gist(await shop.keyed(ID))).toBe(IN_PROGRESS);
    expect(shop.upstream.calls).toHaveLength(1);
  });
});

test('a key whose record cannot be opened is of unknown outcome, and not sent', async () => {
  const record = { fingerprint: '', outcome: 'unknown' } as const;
  const store = Object.assign(memoryStore(manualClock()), { beginWrite: async () => ({ use: undefined, record }) });
  const shop = await openShop({}, { store });
  expect(gist(await shop.keyed(ID))).toBe('409 outcome_unknown unknown');
  expect(shop.upstream.calls).toEqual([]);
});
