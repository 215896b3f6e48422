import { describe, expect, test } from 'vitest';
import type { OperationId } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';
import { askAll, CACHED, hit, isHit, MISS, NO_STORE, openCache, seen, UNKEPT, warm } from './seen.ts';

const refusal = (status: number) => answer(status, { detail: 'Refused.', code: 'refused' });

/** A group of its own, a list, an item, and one that writes never touch. */
const HELD: readonly OperationId[] = ['getSubscription', 'listTransactions', 'getSubuser', 'listNotifications'];

everywhere(says("An upstream's 401 or 403 drops all that is held for the credential"), async (stage) => {
  const { ask, upstream, me } = stage;
  const other = secret();
  await warm(stage, HELD, { token: other });
  for (const [n, status] of [401, 403].entries()) {
    await warm(stage, HELD);
    upstream.change(me);
    upstream.next('getApiKey', refusal(status));
    expect((await ask('getApiKey')).status).toBe(status);
    for (const read of await askAll(stage, HELD)) expect(seen(read)).toEqual([200, MISS, n + 2]);
  }
  for (const read of await askAll(stage, HELD, { token: other })) expect(seen(read)).toEqual([200, isHit, 1]);
});

everywhere(
  says('and is never answered by a copy.'),
  async ({ ask, pass, upstream }) => {
    for (const status of [401, 403]) {
      await ask('getSubscription');
      await pass(1_000); // it would stand in for any other failure
      upstream.next('getSubscription', refusal(status), answer(500));
      expect((await ask('getSubscription')).status).toBe(status);
      expect((await ask('getSubscription')).status).toBe(502);
    }
  },
  { time: true },
);

describe.each([401, 403])(`${says('drops all that is held for the credential')}: a %i`, (status) => {
  test.each<[OperationId, Record<string, string>]>([
    ['getSubscription', NO_STORE],
    ['getVerificationFlow', {}],
    ['purchasePlan', {}],
  ])('of %s (%j)', async (id, headers) => {
    const { ask, upstream, me } = openCache();
    await askAll({ ask }, CACHED);
    upstream.change(me);
    upstream.next(id, refusal(status));
    expect((await ask(id, { headers })).status).toBe(status);
    for (const read of await askAll({ ask }, CACHED)) expect(seen(read)).toEqual([200, MISS, 2]);
  });

  test('has what is under way neither kept nor joined, nor answered with an older copy on failure', async () => {
    const { ask, see, begin, pass, upstream, me } = openCache();
    await see('getSubuser');
    await pass(400);
    const [slow, failing] = [await begin('getSubscription'), await begin('getSubuser')];
    upstream.next('getApiKey', refusal(status));
    await ask('getApiKey');
    upstream.change(me);
    expect(await see('getSubscription')).toEqual([200, MISS, 2]);
    expect(await slow.end()).toEqual([200, UNKEPT, 1]);
    expect(await failing.end(answer(500))).toEqual([502, null, undefined]);
    expect(await see('getSubscription')).toEqual([200, isHit, 2]);
  });

  test('of a refresh behind a stale copy', async () => {
    const { ask, see, pass, idle, upstream } = openCache();
    await askAll({ ask }, HELD);
    await pass(31);
    upstream.next('getSubscription', refusal(status), refusal(status));
    expect(await see('getSubscription')).toEqual([200, hit(-1), 1]);
    await idle();
    expect((await ask('getSubscription')).status).toBe(status);
    expect(await see('getSubuser')).toEqual([200, MISS, 1]);
  });
});
