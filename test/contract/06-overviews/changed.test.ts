import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { openFleet } from '../../support/fleet.ts';
import { type Asked, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { seed, times } from '../../support/times.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';
import { ACCOUNT, LINES, REFERRAL, SECTIONS, textOf, namesIn } from './helpers.ts';

const NEW = { 'Cache-Control': 'no-cache' };

everywhere(
  says('`ETag` is made of a hash of each section and of which sections carry a `code`'),
  async ({ call, upstream, pass }) => {
    const etag = async (headers = {}) => (await call(REFERRAL, { headers })).headers.get('etag')!;
    const first = await etag();
    expect(first).toMatch(/^"[^"]+"$/);
    const seen = new Set([first]);
    for (const id of Object.values(SECTIONS[REFERRAL]!)) {
      upstream.next(id, answer(200, textOf(id, 2)));
      seen.add(await etag(NEW));
    }
    expect([seen.size, await etag(NEW)]).toEqual([5, first]);
    await pass(400); // older than what is given without asking
    upstream.next('listEarnOuts', answer(500));
    const failing = await etag();
    await pass(400);
    expect([failing === first, await etag()]).toEqual([false, first]);
  },
  { time: true },
);

everywhere(
  `${says('ages are not in it')}, ${says("`Age` is the oldest section's.")}`,
  async ({ ask, call, pass }) => {
    await ask('listReferralCredits');
    await pass(20);
    const { headers, json } = await call(REFERRAL);
    const oldest = json.meta.sections.credits.age as number;
    expect([headers.get('age'), oldest >= 20]).toEqual([String(oldest), true]);
    await pass(4);
    const again = await call(REFERRAL, { headers: { 'If-None-Match': headers.get('etag')! } });
    expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', headers.get('etag')]);
    expect(Number(again.headers.get('age'))).toBeGreaterThanOrEqual(oldest + 4);
  },
  { time: true },
);

everywhere(says('`Server-Timing` has an entry a section.'), async ({ call }) => {
  const { headers } = await call(ACCOUNT);
  const timed = headers
    .get('server-timing')
    ?.split(', ')
    .map((entry) => entry.split(';')[0]);
  expect(timed).toEqual([...Object.keys(SECTIONS[ACCOUNT]!), 'total']);
});

const changedFrom = (etag: string | null) => ({ 'If-None-Match': etag!, Prefer: 'changed-sections' });

everywhere(
  says(
    '**Changed sections only**: with `If-None-Match` and `Prefer: changed-sections`, `data` has those that differ from the copy of that ETag; the others are named in `meta.unchanged`; `Preference-Applied: changed-sections`, `no-store`, the new ETag.',
  ),
  async ({ ask, call }) => {
    const first = await call(REFERRAL);
    const headers = changedFrom(first.headers.get('etag'));
    expect(await call(REFERRAL, { headers })).toMatchObject({ status: 304 });
    await ask('updateReferralConfig');
    const told = await call(REFERRAL, { headers });
    expect(told.text.startsWith(`{"data":{"referral_config":${textOf('getReferralConfig', 2)}},"errors":[],`)).toBe(
      true,
    );
    expect(told.json.meta).toMatchObject({ complete: true, unchanged: ['credits', 'earn_outs', 'channels'] });
    expect(namesIn(told.json.meta.sections)).toEqual(Object.keys(SECTIONS[REFERRAL]!));
    const head = ['preference-applied', 'cache-control', 'etag'].map((name) => told.headers.get(name));
    expect(head).toEqual(['changed-sections', 'no-store', (await call(REFERRAL)).headers.get('etag')]);
  },
);

everywhere(says('An ETag that the gateway cannot read gets the whole.'), async ({ call }) => {
  const { json } = await call(REFERRAL);
  for (const etag of ['"other"', '"a.b.c.d"', 'nonsense', '*x', '"', `"${'a'.repeat(16)}.${'b'.repeat(16)}"`]) {
    const whole = await call(REFERRAL, { headers: changedFrom(etag) });
    expect([whole.status, whole.headers.get('preference-applied'), whole.json.data]).toEqual([200, null, json.data]);
    expect(whole.json.meta).not.toHaveProperty('unchanged');
  }
});

const { ask, call, stream, upstream, pass } = openGateway();

test('a weak ETag, one of several and * are taken, and a 304 has the head of the whole', async () => {
  const token = secret();
  const etag = (await call(REFERRAL, { token })).headers.get('etag')!;
  await pass(5);
  for (const one of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const { status, headers } = await call(REFERRAL, { token, headers: { 'If-None-Match': one } });
    const head = ['etag', 'age', 'content-type', 'cache-control'].map((name) => headers.get(name));
    const own = one.startsWith('W/') ? one : etag; // as the client has it
    expect([status, ...head]).toEqual([304, own, '5', null, 'private, no-cache']);
  }
  expect((await call(REFERRAL, { token, headers: { 'If-None-Match': '"other"' } })).status).toBe(200);
});

test('copies that are only being refreshed do not change the ETag; when the refresh has failed, that is news', async () => {
  const token = secret();
  const etag = (await call(REFERRAL, { token })).headers.get('etag')!;
  const status = async () => (await call(REFERRAL, { token, headers: { 'If-None-Match': etag } })).status;
  await pass(31);
  const held = Object.values(SECTIONS[REFERRAL]!).map((id) => upstream.hold(id));
  expect(await status()).toBe(304);
  for (const { release } of held) release(answer(500));
  await pass(0);
  expect(await status()).toBe(200);
});

test('a weak ETag, and one of a list, are taken too, for a HEAD and for lines, whose ETag is that of the JSON', async () => {
  const token = secret();
  const first = await call(REFERRAL, { token });
  await ask('updateReferralConfig', { token });
  const headers = changedFrom(`"other", W/${first.headers.get('etag')}`);
  const told = await call(REFERRAL, { token, headers });
  expect(namesIn(told.json.data)).toEqual(['referral_config']);
  const head = await call(REFERRAL, { token, headers, method: 'HEAD' });
  expect([head.status, head.text, head.headers.get('etag')]).toEqual([200, '', told.headers.get('etag')]);
  const streamed = await stream(REFERRAL, { token, headers: { ...LINES, ...headers } });
  expect(streamed.headers.get('preference-applied')).toBe('changed-sections');
  const [config, ...others] = [
    `"data":${textOf('getReferralConfig', 2)}`,
    ...Array<string>(3).fill('"unchanged":true'),
  ];
  const lines = Object.keys(SECTIONS[REFERRAL]!).map(
    (name, at) => `{"section":"${name}","state":"fresh",${[config, ...others][at]}}`,
  );
  const whole = JSON.stringify({ complete: true, etag: told.headers.get('etag') });
  expect((await streamed.rest()).toSorted()).toEqual([...lines, whole].toSorted());
});

test('of some sections and fields the ETag is another one, and changes are told alike', async () => {
  const token = secret();
  const etagOf = async (query: string) => (await call(REFERRAL + query, { token })).headers.get('etag')!;
  const path = `${REFERRAL}?sections=referral_config,credits&fields[referral_config]=id,mode`;
  const etag = await etagOf(path.slice(REFERRAL.length));
  const queries = ['', '?sections=credits', '?fields[credits]=id', '?sections=credits&fields[credits]=id'];
  expect(new Set([etag, ...(await Promise.all(queries.map(etagOf)))]).size).toBe(5);
  await ask('updateReferralConfig', { token }); // neither field is another one
  expect((await call(path, { token, headers: changedFrom(etag) })).status).toBe(304);
  upstream.next('getReferralConfig', answer(200, '{"id":9,"mode":"payouts"}'));
  upstream.next('listReferralCredits', answer(200, textOf('listReferralCredits')));
  await call(path, { token, headers: NEW });
  const { json } = await call(path, { token, headers: changedFrom(etag) });
  expect(json.data).toEqual({ referral_config: { id: 9, mode: 'payouts' } });
});

test('a failure is told with the whole', async () => {
  const token = secret();
  const headers = { ...changedFrom((await call(ACCOUNT, { token })).headers.get('etag')), ...NEW };
  upstream.next('listNotifications', answer(400));
  const failed = await call(ACCOUNT, { token, headers });
  expect([failed.headers.get('preference-applied'), failed.json.meta.unchanged]).toEqual([null, undefined]);
});

test.each([
  ['upstream_bad_response', answer(500), 200], // it is asked again, and comes
  ['rate_limited', answer(429, '', { 'retry-after': '60' }), 304],
])('that a section is old because of %s is news without data', async (code, reply, then) => {
  const token = secret();
  const { headers } = await call(REFERRAL, { token });
  await pass(400);
  upstream.next('listEarnOuts', reply);
  const told = await call(REFERRAL, { token, headers: changedFrom(headers.get('etag')) });
  expect(told.json).toMatchObject({ data: {}, meta: { sections: { earn_outs: { state: 'stale', code } } } });
  expect((await call(REFERRAL, { token, headers: changedFrom(told.headers.get('etag')) })).status).toBe(then);
});

/** What a client has that takes what comes into what it has. */
class Copy {
  readonly token = secret();
  etag: string | null = null;
  data: Readonly<Record<string, unknown>> = {};

  /** Asks for what has changed. */
  async renew({ call: asks }: Asked): Promise<'failed' | 'same' | 'changes' | 'whole'> {
    const headers = this.etag ? changedFrom(this.etag) : {};
    const answered = await asks(REFERRAL, { token: this.token, headers });
    if (answered.status !== 200) return answered.status === 304 ? 'same' : 'failed';
    const { meta, data } = answered.json;
    const { unchanged = [] } = meta as { unchanged?: readonly string[] };
    const all = { ...Object.fromEntries(unchanged.map((name) => [name, this.data[name]])), ...data };
    this.data = Object.fromEntries(namesIn(meta.sections).map((name) => [name, all[name]]));
    this.etag = answered.headers.get('etag');
    return meta.unchanged ? 'changes' : 'whole';
  }

  /** How new the one section is that is written. */
  get version(): number {
    return (this.data['referral_config'] as { x_version?: number } | null)?.x_version ?? Infinity;
  }
}

const step = fc.record({
  does: fc.constantFrom('change', 'write', 'fail', 'pass', 'ask', 'ask'),
  at: fc.nat({ max: 1 }),
  section: fc.constantFrom(...Object.values(SECTIONS[REFERRAL]!)),
  seconds: fc.constantFrom(1, 31, 100, 400),
});
const WHO =
  'who takes what comes into what he has, has what a new client gets, at either instance, and nothing from before a write';

test(WHO, async () => {
  const { upstream: shared, instances, clock } = await openFleet();
  const counts = { failed: 0, same: 0, changes: 0, whole: 0 };
  const play = fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 16 }), async (steps) => {
    const copy = new Copy();
    let least = 1;
    for (const { does, at, section, seconds } of steps) {
      const [instance, asking] = [instances[at]!, { token: copy.token }];
      if (does === 'change') shared.change(copy.token);
      if (does === 'fail') shared.next(section, answer(500));
      if (does === 'pass') await clock.pass(seconds);
      if (does === 'write') await instance.ask('updateReferralConfig', asking);
      if (does === 'write') least = shared.versionOf(copy.token);
      if (does !== 'ask') continue;
      const came = await copy.renew(instance);
      counts[came]++;
      if (came !== 'failed') expect(copy.version).toBeGreaterThanOrEqual(least);
      shared.clear();
      await instance.call(REFERRAL, asking); // old copies are read anew behind it
      await clock.pass(0);
      const whole = await instance.call(REFERRAL, asking);
      await copy.renew(instance);
      expect([copy.etag, copy.data]).toEqual([whole.headers.get('etag'), whole.json.data]);
    }
    shared.clear();
  });
  await fc.assert(play, { numRuns: times(50), seed: seed() });
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(5);
});
