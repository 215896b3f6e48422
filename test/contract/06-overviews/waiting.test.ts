import { expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { exampleRequest } from '../../support/examples.ts';
import { type Answer, type Asked, type Asking, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer, hang } from '../../support/upstream.ts';
import { REFERRAL } from './helpers.ts';

const CONFIG = exampleRequest('getReferralConfig').path;
const PAYMENT = exampleRequest('getPendingPayment').path;

/** Reads, and asks for what is newer by a request whose first reading is held. */
async function held({ call, upstream }: Asked, path: string, prefer = 'wait=20') {
  const etag = (await call(path)).headers.get('etag')!;
  const { call: arrived, release } = upstream.hold(path === PAYMENT ? 'getPendingPayment' : 'getReferralConfig');
  const headers = { 'If-None-Match': etag, Prefer: prefer, 'Cache-Control': 'no-cache' };
  const answered = call(path, { headers });
  await arrived;
  return { etag, release, answered };
}

const said = ({ status, headers }: Answer) => [status, headers.get('preference-applied')];

everywhere(
  `${says('on overviews, cacheable reads and the pending payment: in the place of a 304, the answer comes when it differs')}. ${says('A write through the same instance is seen at once')}`,
  async (stage) => {
    for (const path of [REFERRAL, CONFIG, PAYMENT]) {
      const { release, answered } = await held(stage, path, 'changed-sections, wait=20');
      await stage.ask('purchasePlan');
      release(); // as it was before
      const got = await answered;
      expect([got.status, got.version]).toEqual([200, stage.upstream.versionOf(stage.me)]);
      expect(got.headers.get('preference-applied')).toBe(`${path === REFERRAL ? 'changed-sections, ' : ''}wait=20`);
    }
  },
  { not: ['fleet'] }, // the next request is another instance's
);

everywhere(
  says('or as a 304 when the time is over (`Preference-Applied: wait=30`).'),
  async (stage) => {
    for (const path of [REFERRAL, CONFIG, PAYMENT]) {
      const { etag, release, answered } = await held(stage, path, 'wait=3');
      await stage.pass(4);
      release();
      expect([said(await answered), (await answered).headers.get('etag')]).toEqual([[304, 'wait=3'], etag]);
    }
  },
  { time: true },
);

everywhere(says('As JSON.'), async ({ call, stream }) => {
  const etag = (await call(REFERRAL)).headers.get('etag')!;
  const headers = { 'If-None-Match': etag, Prefer: 'wait=20', Accept: 'application/x-ndjson' };
  const lines = await stream(REFERRAL, { headers }); // which waits for nothing
  expect([lines.headers.get('preference-applied'), (await lines.rest()).length]).toEqual([null, 5]);
});

everywhere(
  says('else the gateway reads again every 2 s, through the cache.'),
  async ({ ask, call, pass, upstream }) => {
    const etag = (await call(CONFIG)).headers.get('etag')!;
    const headers = { 'If-None-Match': etag, Prefer: 'wait=20', 'Cache-Control': 'no-cache' };
    const answered = call(CONFIG, { headers });
    await pass(3);
    expect(upstream.calls).toHaveLength(2); // the first is new, as the client wants it
    await ask('updateReferralConfig'); // through the other instance, where there is one
    await pass(2);
    expect(await answered).toMatchObject({ status: 200, version: 2 });
  },
  { time: true, not: ['node', 'workerd'] }, // nobody sees there when its pause begins
);

everywhere(
  says('credential or session are looked at again before the answer.'),
  async (stage) => {
    const { release, answered } = await held(stage, PAYMENT);
    await stage.ask('purchasePlan');
    stage.upstream.next('getPendingPayment', answer(401));
    release();
    expect((await answered).status).toBe(401);
  },
  { not: ['fleet'] },
);

everywhere(
  says('One in the limit.'),
  async (stage) => {
    const { release, answered } = await held(stage, PAYMENT);
    await stage.ask('purchasePlan');
    release();
    const left = [await answered, await stage.call(PAYMENT)].map(({ headers }) => headers.get('ratelimit'));
    expect(left).toEqual([expect.stringMatching(/\br=7\b/), expect.stringMatching(/\br=5\b/)]); // and the write is one
  },
  { env: { RATE_LIMIT_PER_MINUTE: '9' }, not: ['workerd', 'fleet'] }, // not worth a workerd of its own
);

const { ask, call, upstream, pass, endWaits, lines } = openGateway();

/** Reads, and waits for what is newer. */
async function wait(path: string, asking: Pick<Asking, 'signal'> & { token?: string } = {}, prefer = 'wait=6') {
  const { token = secret(), signal } = asking;
  const etag = (await call(path, { token })).headers.get('etag')!;
  const asked = { 'If-None-Match': etag, Prefer: prefer };
  const answered = call(path, { token, headers: asked, ...(signal && { signal }) });
  await pass(0);
  return { token, asked, answered };
}

test('it is read again until the time is over, whoever else writes, and that is not slow', async () => {
  const { answered, token } = await wait(PAYMENT);
  await ask('purchasePlan'); // of another account
  await pass(6);
  expect([said(await answered), upstream.callsOf(token).length]).toEqual([[304, 'wait=6'], 5]);
  expect(lines.at(-1)).toMatchObject({ duration_ms: 6000 });
  expect(lines.at(-1)).not.toHaveProperty('legs');
});

test('what differs at the upstream is seen once a copy is old', async () => {
  const token = secret();
  await call(CONFIG, { token });
  await pass(20);
  const { answered } = await wait(CONFIG, { token }, 'wait=20');
  upstream.change(token);
  await pass(14); // a copy of 30 s is read anew behind a reading, which the next one sees
  expect(await answered).toMatchObject({ status: 200, version: 2 });
});

test(says('`REQUEST_TIMEOUT_MS` holds for each reading, not for the wait'), async () => {
  const { answered } = await wait(PAYMENT, {}, 'wait=13');
  await pass(11);
  upstream.next('getPendingPayment', hang());
  await pass(1 + 5);
  expect(await answered).toMatchObject({ status: 504, code: 'upstream_timeout' });
  expect(lines.at(-1)).toMatchObject({ duration_ms: 17_000, upstream_calls: 7 });
});

const MOST = `${says('At most 4 of an account and 5,000 of an instance wait')}: ${says('beyond that the 304 comes at once.')}`;
test(MOST, { timeout: 30_000 }, async () => {
  const own = openGateway();
  const etag = (await own.call(CONFIG)).headers.get('etag')!; // all have the same
  const headers = { 'If-None-Match': etag, Prefer: 'wait=20' };
  const more = async (token = secret()) => said(await own.call(CONFIG, { token, headers }));
  const waits: Promise<unknown>[] = [];
  for (let many = 0; many < 5_000; many += 4) {
    const token = secret();
    waits.push(...Array.from({ length: 4 }, () => more(token)));
    await own.pass(0);
    if (many === 0) expect(await more(token)).toEqual([304, null]);
  }
  expect(await more()).toEqual([304, null]);
  own.endWaits();
  expect(new Set((await Promise.all(waits)).map(String))).toEqual(new Set(['304,wait=20']));
});

test('a request takes no place while its first answer is on its way, nor when its client has left', async () => {
  const token = secret();
  const first = Array.from({ length: 4 }, () => upstream.hold('getPendingPayment'));
  const headers = { 'If-None-Match': '"old"', Prefer: 'wait=6' };
  const reading = first.map((_, at) => call(`${PAYMENT}?n=${at}`, { token, headers }));
  const leaving = new AbortController();
  const waits = [];
  for (let n = 0; n < 4; n++) waits.push((await wait(CONFIG, { token, signal: leaving.signal })).answered);
  leaving.abort();
  await Promise.all(waits);
  const { answered } = await wait(CONFIG, { token });
  for (const { release } of first) release();
  await Promise.all(reading);
  await pass(6);
  expect(said(await answered)).toEqual([304, 'wait=6']);
});

test.each([
  ['wait=99999999999', 30],
  ['respond-async, WAIT = 6', 6],
  ['other="a, wait=3"; wait=4, wait=6; wait=5, wait=7', 6],
])(`%s is %i seconds (${says('at most 30 s')})`, async (prefer, seconds) => {
  const { answered } = await wait(CONFIG, {}, prefer);
  await pass(seconds - 0.001);
  const before = lines.length;
  await pass(0.001);
  expect(lines.length).toBe(before + 1); // not sooner
  expect(said(await answered)).toEqual([304, `wait=${seconds}`]);
});

test('other preferences are no wait, nor has who has no copy anything to wait for', async () => {
  for (const prefer of ['wait=0', 'wait=-1', 'wait=soon', 'wait', 'wait=1e3', 'other; wait=7', 'other="a, wait=7"'])
    expect(said(await (await wait(CONFIG, {}, prefer)).answered), prefer).toEqual([304, null]);
  expect(said(await call(CONFIG, { token: secret(), headers: { Prefer: 'wait=6' } }))).toEqual([200, null]);
  for (const id of ['getApiKey', 'getVerificationFlow'] as const)
    expect((await ask(id, { headers: { 'If-None-Match': '*', Prefer: 'wait=6' } })).status).toBe(200); // never cached
});

test.each([
  ['is signed out', 0],
  ['expires', 7 * 86_400 - 1],
])('a session that %s meanwhile is a 401', async (how, age) => {
  const own = openGateway({ SESSIONS: 'true', SECRETS: secret() + secret() });
  const from = { 'Sec-Fetch-Site': 'same-origin' };
  const signedIn = await own.call('/bff/v1/session', { token: null, headers: from, body: { token: secret() } });
  const asking = { token: null, headers: { ...from, Cookie: signedIn.headers.getSetCookie()[0]!.split(';')[0]! } };
  await own.pass(age);
  const etag = (await own.call(CONFIG, asking)).headers.get('etag')!;
  const headers = { ...asking.headers, 'If-None-Match': etag, Prefer: 'wait=6' };
  const answered = own.call(CONFIG, { ...asking, headers });
  await own.pass(0);
  if (how === 'is signed out') await own.call('/bff/v1/session', { ...asking, method: 'DELETE' });
  await own.pass(2);
  expect((await answered).status).toBe(401);
});

test(says('SIGTERM ends waits.'), async () => {
  const { answered, asked: headers, token } = await wait(PAYMENT);
  endWaits();
  expect([said(await answered), upstream.calls.length]).toEqual([[304, 'wait=6'], 2]);
  expect(said(await call(PAYMENT, { token, headers }))).toEqual([304, null]); // nobody begins to
});
