import { describe, expect, test } from 'vitest';
import { gist, openShop, UNKNOWN } from '../idempotency/helpers.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import { bodyOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { fillWithRecords, memoryStore } from '../support/stores.ts';

const openFilling = async () => {
  const clock = clockOfDeadlines();
  const store = memoryStore(clock);
  const shop = await openShop({}, { clock, store });
  return { ...shop, fill: () => fillWithRecords(store) };
};

describe('a record stands while others have all the room that there is:', () => {
  test.each(['createApiKey', 'refreshSubuser'] as const)('of the answer to %s', async (id) => {
    const { fill, keyed, script } = await openFilling();
    script(id, json(200, bodyOf(id, 1)));
    const first = await keyed(id);
    expect(first.status).toBe(200);
    await fill();
    const again = await keyed(id);
    expect([again.status, again.text, again.headers['idempotency-replayed']]).toEqual([200, first.text, 'true']);
  });

  test('of a write of unknown outcome', async () => {
    const { fill, keyed, script } = await openFilling();
    script('createApiKey', json(500));
    await keyed('createApiKey');
    await fill();
    expect(gist(await keyed('createApiKey'))).toBe(UNKNOWN);
  });
});
