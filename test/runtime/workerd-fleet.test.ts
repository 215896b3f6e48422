import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { cacheOf, filesIn, isHit, type Isolates, startIsolates } from './worker-fleet.ts';
import { complaintsIn } from './worker-gateway.ts';
import { markOf } from '../support/marked.ts';
import { leaksIn, secret } from '../support/secrets.ts';
import { times } from '../support/times.ts';

const BUYERS = 30;

type Kind = readonly [write: OperationId, read: OperationId];

/** What each of the accounts does, all at once. */
const KINDS: readonly Kind[] = [
  ['updateReferralConfig', 'getReferralConfig'],
  ['deletePaymentMethod', 'listPaymentMethods'],
  ['refreshSubuser', 'getSubuser'],
  ['purchasePlan', 'getSubscription'],
];

const ACCOUNTS = [...KINDS, ...KINDS, ...KINDS];
const PAIRS = ACCOUNTS.length * times(84);

const newOrder = () => ({ token: secret(), key: secret('idempotency') });

const oddOnesOut = (gists: readonly string[], expected: string) => gists.filter((gist) => gist !== expected);

/** Nothing but the upstream's address is given: they find a secret among themselves. */
describe('isolates that were given no secret', () => {
  let isolates: Isolates;
  let [a, b, c] = ['', '', ''];

  beforeAll(async () => {
    isolates = await startIsolates(3, { RATE_LIMIT_PER_MINUTE: '0' });
    [a = '', b = '', c = ''] = isolates.urls;
  });

  afterAll(() => isolates.close());

  it('share a cached answer: what one has asked for is a hit in the others, and costs nothing', async () => {
    const token = secret();
    const first = await isolates.ask(a, 'getSubscription', { token });
    expect(cacheOf(first)).toBe('portico; fwd=miss; stored');
    for (const url of [b, c]) {
      const again = await isolates.ask(url, 'getSubscription', { token });
      expect([isHit(again), again.text, again.headers['etag']]).toEqual([true, first.text, first.headers['etag']]);
    }
    expect(isolates.callsOf(token)).toHaveLength(1);
  });

  it('share it in overviews too', async () => {
    const token = secret();
    const path = '/bff/v1/account-overview';
    const cold = await isolates.ask(a, 'getSubscription', { token, path });
    const calls = isolates.callsOf(token).length;
    const warm = await isolates.ask(b, 'getSubscription', { token, path });
    expect([cold.status, warm.headers['etag'], isHit(warm)]).toEqual([200, cold.headers['etag'], true]);
    expect(isolates.callsOf(token)).toHaveLength(calls);
  });

  it(`give none of ${PAIRS} reads through one what was there before the write through another`, async () => {
    const counts = { pairs: 0, reads: 0, hits: 0, old: 0, refused: 0 };
    const account = async ([write, read]: Kind) => {
      const token = secret();
      const reading = async (url: string) => {
        const answer = await isolates.ask(url, read, { token });
        counts.reads++;
        if (isHit(answer)) counts.hits++;
        if (markOf(answer.text) !== isolates.versionOf(token)) counts.old++;
      };
      for (const url of [a, b]) await isolates.prime(url, read, token);
      for (let n = 0; n < PAIRS / ACCOUNTS.length; n++) {
        const [one, other] = n % 2 === 0 ? [a, b] : [b, a];
        const written = await isolates.ask(one, write, { token });
        if (written.status >= 300) counts.refused++;
        await reading(other);
        counts.pairs++;
        await reading(one);
      }
    };
    await Promise.all(ACCOUNTS.map(account));
    process.stdout.write(`write-then-read pairs across isolates: ${JSON.stringify(counts)}\n`);
    expect(counts).toMatchObject({ pairs: PAIRS, old: 0, refused: 0 });
    expect(counts.hits).toBeGreaterThan(0);
  });

  describe.each(KINDS)('%s and %s', (write, read) => {
    const expectNew = async (token: string) => {
      for (const url of [a, b, c, a]) expect(markOf((await isolates.ask(url, read, { token })).text)).toBe(2);
    };

    it('keep no read through one from before the write through another', async () => {
      const token = secret();
      const held = isolates.holdNext(token, read);
      const slow = isolates.ask(a, read, { token });
      await held.reached;
      expect((await isolates.ask(b, write, { token })).status).toBeLessThan(300);
      // Nobody joins it, in the isolate that it goes through either.
      expect(markOf((await isolates.ask(a, read, { token })).text)).toBe(2);
      held.release();
      expect([markOf((await slow).text), cacheOf(await slow)]).toEqual([1, 'portico; fwd=miss']);
      await expectNew(token);
    });

    it('give no read of before the write where nobody has read in between', async () => {
      const token = secret();
      const held = isolates.holdNext(token, read);
      const slow = isolates.ask(a, read, { token });
      await held.reached;
      expect((await isolates.ask(b, write, { token })).status).toBeLessThan(300);
      held.release();
      expect(markOf((await slow).text)).toBe(1);
      await expectNew(token);
    });

    it('keep none that began and ended while the write was under way', async () => {
      const token = secret();
      const writing = isolates.holdNext(token, write);
      const written = isolates.ask(b, write, { token });
      await writing.reached;
      expect(markOf((await isolates.ask(a, read, { token })).text)).toBe(1);
      writing.release();
      expect((await written).status).toBeLessThan(300);
      await expectNew(token);
    });
  });

  it('share the answer that was asked for last, whichever comes last', async () => {
    const token = secret();
    const held = isolates.holdNext(token, 'getSubscription');
    const early = isolates.ask(a, 'getSubscription', { token });
    await held.reached;
    isolates.change(token); // by somebody who does not come through here
    const fresh = { token, headers: { 'cache-control': 'no-cache' } };
    expect(markOf((await isolates.ask(b, 'getSubscription', fresh)).text)).toBe(2);
    held.release();
    expect(markOf((await early).text)).toBe(1);
    for (const url of [b, c]) {
      const answer = await isolates.ask(url, 'getSubscription', { token });
      expect([markOf(answer.text), isHit(answer)]).toEqual([2, true]);
    }
  });

  it('drop what all of them hold when one is answered 401', async () => {
    const token = secret();
    for (const url of [a, b, c]) await isolates.prime(url, 'getSubscription', token);
    isolates.revoke(token);
    expect(await isolates.gist(a, 'getApiKey', { token })).toBe('401 unauthenticated');
    for (const url of [a, b, c])
      expect(await isolates.gist(url, 'getSubscription', { token })).toBe('401 unauthenticated');
  });

  it(`charge once for ${BUYERS} purchases at once with one key, and give all the same answer afterwards`, async () => {
    const order = newOrder();
    const held = isolates.holdNext(order.token, 'purchasePlan');
    const { promise: allButOne, resolve } = Promise.withResolvers<void>();
    let answered = 0;
    const buyers = Array.from({ length: BUYERS }, async (_, n) => {
      const gist = await isolates.gist([a, b, c][n % 3]!, 'purchasePlan', order);
      if (++answered === BUYERS - 1) resolve();
      return gist;
    });
    await held.reached;
    await allButOne;
    held.release();
    const gists = await Promise.all(buyers);
    expect(oddOnesOut(gists, '409 idempotency_in_progress')).toEqual(['201 2']);
    for (const url of [a, b, c]) expect(await isolates.gist(url, 'purchasePlan', order)).toBe('201 2 replayed');
    expect(isolates.charges({ token: order.token })).toBe(1);
  });

  it('charge once for as many that nobody holds up: the others are replays or under way', async () => {
    const order = newOrder();
    const gists = await Promise.all(
      Array.from({ length: BUYERS }, (_, n) => isolates.gist([a, b, c][n % 3]!, 'purchasePlan', order)),
    );
    expect(oddOnesOut(gists, '409 idempotency_in_progress').filter((gist) => gist !== '201 2 replayed')).toEqual([
      '201 2',
    ]);
    expect(isolates.charges({ token: order.token })).toBe(1);
  });

  it('refuse the second of two equal purchases at the same moment without a key', async () => {
    const token = secret();
    const held = isolates.holdNext(token, 'purchasePlan');
    const first = isolates.gist(a, 'purchasePlan', { token });
    await held.reached;
    expect(await isolates.gist(b, 'purchasePlan', { token })).toBe('409 idempotency_in_progress');
    held.release();
    expect(await first).toBe('201 2');
    expect(isolates.charges({ token })).toBe(1);
    expect(await isolates.gist(c, 'purchasePlan', { token })).toBe('201 3'); // the moment is over
  });

  it('take a key for one request: another body through another isolate is refused', async () => {
    const order = newOrder();
    expect(await isolates.gist(a, 'purchasePlan', order)).toBe('201 2');
    const other = { ...order, body: { proxy_countries: { US: 7 } } };
    expect(await isolates.gist(b, 'purchasePlan', other)).toBe('422 idempotency_key_reused');
    expect(isolates.charges({ token: order.token })).toBe(1);
  });

  it('know all that after the process was killed and another one has taken its disk', async () => {
    const order = newOrder();
    await isolates.prime(a, 'getSubscription', order.token);
    expect(await isolates.gist(a, 'purchasePlan', order)).toBe('201 2');
    await isolates.prime(b, 'getSubscription', order.token);
    expectNoComplaint(isolates);
    await isolates.restart();
    [a = '', b = '', c = ''] = isolates.urls;
    const calls = isolates.callsOf(order.token).length;
    // The secret that they found is on the disk too.
    for (const url of [a, b, c]) {
      expect(await isolates.gist(url, 'purchasePlan', order)).toBe('201 2 replayed');
      expect(isHit(await isolates.ask(url, 'getSubscription', order))).toBe(true);
    }
    expect(isolates.callsOf(order.token)).toHaveLength(calls);
  });

  it('have nothing on disk that gives a secret of anyone away', async () => {
    await isolates.fleet.kill();
    const files = filesIn(isolates.fleet.objects);
    expect(files.length).toBeGreaterThan(10);
    expect(files.filter(({ text }) => text.includes('CREATE TABLE kept')).length).toBeGreaterThan(5);
    expect(leaksIn(files.map(({ name, text }) => `${name} ${text}`).join('\n'))).toEqual([]);
  });

  it('have heard no complaint of workerd', () => expectNoComplaint(isolates));
});

describe('isolates with secrets', () => {
  const [OLD, NEW] = [secret('of-the-isolates-themselves'), secret('of-the-isolates-themselves')];
  const vars = { REQUEST_TIMEOUT_MS: '3000' };
  let isolates: Isolates;

  beforeAll(async () => {
    isolates = await startIsolates(2, { ...vars, SECRETS: OLD });
  });

  afterAll(() => isolates.close());

  it('killed in mid-purchase, know that there was one: the key answers 409 and nothing is charged again', async () => {
    const [order, settled] = [newOrder(), newOrder()];
    expect(await isolates.gist(isolates.urls[0]!, 'purchasePlan', settled)).toBe('201 2');
    const held = isolates.holdNext(order.token, 'purchasePlan');
    const dying = isolates.ask(isolates.urls[0]!, 'purchasePlan', order).catch(() => 'cut off');
    await held.reached;
    expectNoComplaint(isolates);
    await isolates.restart();
    held.release();
    expect(await dying).toBe('cut off');
    for (const url of isolates.urls) {
      // Under way, as far as anyone can know, until its time is over, which it may be by now.
      expect(await isolates.gist(url, 'purchasePlan', order)).toMatch(
        /^409 (idempotency_in_progress|outcome_unknown)$/,
      );
      expect(await isolates.gist(url, 'purchasePlan', settled)).toBe('201 2 replayed');
    }
    const later = () => isolates.gist(isolates.urls[1]!, 'purchasePlan', order);
    await expect.poll(later, { timeout: 60_000, interval: 250 }).toBe('409 outcome_unknown');
    expect(await isolates.gist(isolates.urls[0]!, 'purchasePlan', order)).toBe('409 outcome_unknown');
    expect([isolates.charges({ token: order.token }), isolates.charges({ token: settled.token })]).toEqual([1, 1]);
  });

  it('open with a new secret first what they have sealed with the old one', async () => {
    const order = newOrder();
    const { token } = order;
    expect(await isolates.gist(isolates.urls[0]!, 'purchasePlan', order)).toBe('201 2');
    await isolates.prime(isolates.urls[1]!, 'getSubscription', token);
    expectNoComplaint(isolates);
    await isolates.restart({ ...vars, SECRETS: `${NEW},${OLD}` });
    const [a = '', b = ''] = isolates.urls;
    for (const url of [a, b]) expect(await isolates.gist(url, 'purchasePlan', order)).toBe('201 2 replayed');
    // And a write under the new one is seen by all.
    for (const url of [a, b]) await isolates.prime(url, 'getReferralConfig', token);
    expect(await isolates.gist(a, 'updateReferralConfig', { token })).toBe('200 3');
    for (const url of [b, a]) expect(await isolates.gist(url, 'getReferralConfig', { token })).toBe('200 3');
    expect(isolates.charges({ token })).toBe(1);
  });

  it('have nothing on disk that gives a secret away, their own included', async () => {
    expectNoComplaint(isolates);
    await isolates.fleet.kill();
    const files = filesIn(isolates.fleet.objects);
    expect(files.length).toBeGreaterThan(2);
    expect(leaksIn(files.map(({ name, text }) => `${name} ${text}`).join('\n'))).toEqual([]);
  });
});

function expectNoComplaint({ fleet }: Isolates): void {
  expect(complaintsIn(fleet)).toEqual([]);
}
