import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cacheOf, isHit, type Isolates } from '../runtime/worker-fleet.ts';
import { byCookie, cookieIn, expectOver, SESSION, signInWith } from '../sessions/helpers.ts';
import { call, type CallOptions } from '../support/http.ts';
import { markOf } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { isOf, requestOf } from '../support/versioned-upstream.ts';
import { reset } from '../support/scripted-upstream.ts';
import { bundleOf, expectNoComplaint, newOrder, open, PER_MINUTE } from './isolates.ts';
import { DIRECTIONS, type Version } from './versions.ts';

const LOOK = { path: SESSION } as const;
const REPLAYED = '201 2 replayed';
const IN_PROGRESS = '409 idempotency_in_progress';
const UNKNOWN = '409 outcome_unknown';

const by = (url: string, cookie: string, options: CallOptions) => call(url, byCookie(cookie, options));
const signIn = async (url: string, token: string) => cookieIn(await call(url, signInWith(token)));

/** A gradual deployment: both ask the same objects, which are of one of them. */
describe.each(DIRECTIONS)('isolates of both versions, with the objects of %s', (whose, others) => {
  let isolates: Isolates;
  let pairs: readonly (readonly [string, string])[];

  beforeAll(async () => {
    isolates = await open(whose, others);
    const [a = '', b = ''] = isolates.urls;
    pairs = [
      [a, b],
      [b, a],
    ];
  });
  afterAll(() => isolates.close());

  test('send a purchase once: it is under way, done or of unknown outcome for both', async () => {
    for (const [from, to] of pairs) {
      const [order, lost] = [newOrder(), newOrder()];
      const held = isolates.holdNext(order.token, 'purchasePlan');
      const buying = isolates.gist(from, 'purchasePlan', order);
      await held.reached;
      expect(await isolates.gist(to, 'purchasePlan', order)).toBe(IN_PROGRESS);
      held.release();
      expect(await buying).toBe('201 2');
      expect(await isolates.gist(to, 'purchasePlan', order)).toBe(REPLAYED);
      const other = { ...order, body: { proxy_countries: { US: 7 } } };
      expect(await isolates.gist(to, 'purchasePlan', other)).toBe('422 idempotency_key_reused');
      isolates.upstream.once((sent) => isOf(lost.token, sent), reset());
      expect((await isolates.ask(from, 'purchasePlan', lost)).json).toMatchObject({ outcome: 'unknown' });
      expect(await isolates.gist(to, 'purchasePlan', lost)).toBe(UNKNOWN);
      expect([isolates.charges(order), isolates.charges(lost)]).toEqual([1, 1]);
    }
  });

  test('tell in this version what became of a key of either, and leave one free that nobody has taken', async () => {
    const ours = isolates.urls[whose === 'this version' ? 0 : 1]!;
    const outcomeOf = async ({ token, key }: ReturnType<typeof newOrder>) =>
      (await call(ours, { path: '/bff/v1/outcome', token, headers: { 'Idempotency-Key': key } })).json;
    for (const url of isolates.urls) {
      const order = newOrder();
      for (let time = 0; time < 2; time++) expect(await outcomeOf(order)).toMatchObject({ code: 'outcome_not_found' });
      expect(await isolates.gist(url, 'purchasePlan', order)).toBe('201 2');
      const when = url === ours ? { at: expect.any(String) } : {};
      expect(await outcomeOf(order)).toEqual({ state: 'done', status: 201, ...when });
    }
  });

  test('give no copy from before a write, nor one that was read while it was under way', async () => {
    for (const [from, to] of pairs) {
      const token = secret();
      await isolates.prime(from, 'getReferralConfig', token);
      expect(isHit(await isolates.ask(to, 'getReferralConfig', { token }))).toBe(true);
      const writing = isolates.holdNext(token, 'updateReferralConfig');
      const written = isolates.gist(from, 'updateReferralConfig', { token });
      await writing.reached;
      expect(cacheOf(await isolates.ask(to, 'getReferralConfig', { token }))).toBe('portico; fwd=miss');
      writing.release();
      expect(await written).toBe('200 2');
      for (const url of [to, from])
        expect(markOf((await isolates.ask(url, 'getReferralConfig', { token })).text)).toBe(2);
    }
  });

  test('drop what both hold when one is answered 401', async () => {
    const token = secret();
    for (const url of isolates.urls) await isolates.prime(url, 'getSubscription', token);
    isolates.revoke(token);
    for (const id of ['getApiKey', 'getSubscription'] as const)
      for (const url of isolates.urls) expect(await isolates.gist(url, id, { token })).toBe('401 unauthenticated');
  });

  test('end a session together', async () => {
    for (const [from, to] of pairs) {
      const cookie = await signIn(from, secret());
      expect((await by(to, cookie, requestOf('getApiKey'))).status).toBe(200);
      expect((await by(to, cookie, { ...LOOK, method: 'DELETE' })).status).toBe(204);
      for (const url of [from, to]) expectOver(await by(url, cookie, LOOK));
    }
  });

  test('count in one limit', async () => {
    const token = secret();
    const statuses = [];
    for (let n = 0; n < PER_MINUTE + 2; n++)
      statuses.push((await isolates.ask(isolates.urls[n % 2]!, 'getSubscription', { token })).status);
    expect(statuses).toEqual([...Array.from({ length: PER_MINUTE }, () => 200), 429, 429]);
  });

  test('have no complaint', () => expectNoComplaint(isolates));
});

describe('objects that are deployed, rolled back and deployed again', () => {
  let isolates: Isolates;
  /** Of all versions so far. */
  const orders: { readonly order: ReturnType<typeof newOrder>; readonly end: string }[] = [];
  const overs: string[] = [];
  const alive: string[] = [];

  beforeAll(async () => {
    isolates = await open('the last release');
  });
  afterAll(() => isolates.close());

  const url = () => isolates.urls[0]!;
  const gist = (...asked: [Parameters<Isolates['gist']>[1], Parameters<Isolates['gist']>[2]]) =>
    isolates.gist(url(), ...asked);

  /** Carried out by the version that stands, to be known to all later ones. */
  const leaveBehind = async () => {
    const [done, lost, token] = [newOrder(), newOrder(), secret()];
    expect(await gist('purchasePlan', done)).toBe('201 2');
    isolates.upstream.once((sent) => isOf(lost.token, sent), reset());
    expect((await isolates.ask(url(), 'purchasePlan', lost)).json).toMatchObject({ outcome: 'unknown' });
    orders.push({ order: done, end: REPLAYED }, { order: lost, end: UNKNOWN });
    const [out, everywhere, on] = [
      await signIn(url(), secret()),
      await signIn(url(), token),
      await signIn(url(), secret()),
    ];
    expect((await by(url(), out, { ...LOOK, method: 'DELETE' })).status).toBe(204);
    expect((await by(url(), everywhere, { path: `${SESSION}?everywhere=true`, method: 'DELETE' })).status).toBe(204);
    overs.push(out, everywhere);
    alive.push(on, await signIn(url(), token));
  };

  const expectKnown = async () => {
    for (const { order, end } of orders) {
      expect(await gist('purchasePlan', order)).toBe(end);
      expect(isolates.charges(order)).toBe(1);
    }
    for (const cookie of overs) expectOver(await by(url(), cookie, LOOK));
    for (const cookie of alive) expect((await by(url(), cookie, LOOK)).json).toMatchObject({ authenticated: true });
  };

  describe.each<readonly [Version, Version]>([...DIRECTIONS, ['the last release', 'this version']])(
    '%s, then %s',
    (_, next) => {
      test('knows records, sessions, copies, what is under way and how much is left of a limit', async () => {
        await leaveBehind();
        const [busy, reader, often] = [newOrder(), secret(), secret()];
        await isolates.prime(url(), 'getReferralConfig', reader);
        for (let n = 0; n < PER_MINUTE; n++)
          expect((await isolates.ask(url(), 'getSubscription', { token: often })).status).toBe(200);
        const held = isolates.holdNext(busy.token, 'purchasePlan');
        const cut = gist('purchasePlan', busy).catch(() => 'cut off');
        await held.reached;
        expectNoComplaint(isolates);

        await isolates.restart(undefined, [await bundleOf(next)]);
        held.release();
        expect(await cut).toBe('cut off');
        expect([IN_PROGRESS, UNKNOWN]).toContain(await gist('purchasePlan', busy)); // its time may be over
        expect(await gist('getSubscription', { token: often })).toBe('429 rate_limited');
        expect(isHit(await isolates.ask(url(), 'getReferralConfig', { token: reader }))).toBe(true);
        expect(await gist('updateReferralConfig', { token: reader })).toBe('200 2');
        expect(await gist('getReferralConfig', { token: reader })).toBe('200 2');
        await expect.poll(() => gist('purchasePlan', busy), { timeout: 15_000, interval: 500 }).toBe(UNKNOWN);
        orders.push({ order: busy, end: UNKNOWN });
        await expectKnown();
      });
    },
  );

  test('have no complaint', () => expectNoComplaint(isolates));
});
