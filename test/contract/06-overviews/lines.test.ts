import { expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer, hang, reset } from '../../support/upstream.ts';
import { ACCOUNT, LINES, REFERRAL, SECTIONS, textOf, withCard } from './helpers.ts';

const lineOf = (name: string) => `{"section":"${name}","state":"fresh","data":${textOf(SECTIONS[ACCOUNT]![name]!)}}`;
/** What a whole answer ends with, and one in which a section failed. */
const COMPLETE = expect.stringMatching(/^\{"complete":true,"etag":"\\"[^"]*\\""\}$/) as string;
const PARTIAL = '{"complete":true}';

everywhere(
  says(
    '`Accept: application/x-ndjson`: a line for each section the moment it is there, `{"section":"subscription","state":"fresh","data":{…}}` or with `error`, and last `{"complete":true,"etag":"…"}` as today',
  ),
  async ({ call, stream, upstream }) => {
    const [config, list] = [upstream.hold('getReferralConfig'), upstream.hold('listPaymentMethods')];
    const notifications = upstream.hold('listNotifications');
    const { next, rest, headers } = await stream(ACCOUNT, { headers: LINES });
    expect([headers.get('content-type'), headers.get('cache-control')]).toEqual(['application/x-ndjson', 'no-store']);
    expect(await next()).toBe(lineOf('subscription'));
    config.release();
    expect(await next()).toBe(lineOf('referral_config'));
    list.release();
    expect(await next()).toBe(lineOf('payment_method'));
    notifications.release(answer(400));
    const error = { code: 'bad_request', status: 400, retryable: false, detail: expect.any(String) as string };
    expect(JSON.parse((await next())!)).toEqual({ section: 'notifications', state: 'failed', error });
    expect(await rest()).toEqual([PARTIAL]);
    const whole = await (await stream(REFERRAL, { headers: LINES })).rest();
    const etag = (await call(REFERRAL)).headers.get('etag');
    expect([whole.length, JSON.parse(whole.at(-1)!)]).toEqual([5, { complete: true, etag }]);
  },
);

everywhere(says('without that line it was cut off.'), async ({ ask, stream, upstream }) => {
  const [list, config] = [upstream.hold('listPaymentMethods'), upstream.hold('getReferralConfig')];
  upstream.next('listNotifications', answer(400));
  const lines = await stream(ACCOUNT, { headers: LINES });
  expect([await lines.next(), await lines.next()]).toContain(lineOf('subscription'));
  config.release(answer(403, { detail: 'Two factors.', code: '2fa_needed' }));
  expect(await lines.rest().catch(() => [])).toEqual([]);
  await list.call.then(({ left }) => left); // the others are given up
  list.release();
  expect((await ask('getSubscription')).cache).toContain('fwd=miss'); // and nothing of the account is held any more
});

everywhere(
  says('It begins when the required sections are there, so their failure still has its status.'),
  async ({ stream, upstream }) => {
    const subscription = upstream.hold('getSubscription');
    const opening = stream(ACCOUNT, { headers: LINES });
    await Promise.all(Object.values(SECTIONS[ACCOUNT]!).map((id) => upstream.arrived(id)));
    subscription.release(answer(500));
    const { status, headers, rest } = await opening;
    expect([status, headers.get('content-type')]).toEqual([502, 'application/problem+json']);
    expect(JSON.parse((await rest()).join(''))).toMatchObject({ code: 'upstream_bad_response', instance: ACCOUNT });
  },
);

const { call, stream, upstream, pass, lines: log, clock, request } = openGateway();
const open = (path = ACCOUNT, { token = secret(), ...more }: Readonly<Record<string, string>> = {}) =>
  stream(path, { token, headers: { ...LINES, ...more } });

test('they are the same from copies, and leave no timer behind', async () => {
  const [token, before] = [secret(), clock.timers().length];
  const lines = await (await open(ACCOUNT, { token })).rest();
  const all = Object.keys(SECTIONS[ACCOUNT]!).map((name) => lineOf(name));
  expect([lines.slice(0, -1).toSorted(), lines.at(-1)]).toEqual([all.toSorted(), COMPLETE]);
  expect(await (await open(ACCOUNT, { token })).rest()).toEqual([...all, lines.at(-1)]);
  expect([upstream.calls.length, clock.timers().length]).toEqual([4, before]);
});

test('JSON over several lines becomes one, value for value', async () => {
  const pretty =
    '{\r\n  "id": 5,\n\n\t"payment_method": null,\r"text": "a\\n  b\\r\\n c   d\u0085\u2028\u2029",\n "n": 25.0\n}\n';
  upstream.next('getSubscription', answer(200, pretty));
  const lines = await (await open()).rest();
  expect([lines.length, lines[0]]).toEqual([5, expect.stringMatching(/^[^\u0085\u2028\u2029]*25\.0[^\u2029]*$/)]);
  expect(JSON.parse(lines[0]!)).toMatchObject({ section: 'subscription', data: JSON.parse(pretty) as object });
});

test('it begins at once where no required section is asked for; what is not there, or skipped, has a line', async () => {
  const held = upstream.hold('listNotifications');
  const lines = await open(`${ACCOUNT}?sections=notifications,referral_config&fields[referral_config]=id`);
  expect(await lines.next()).toBe('{"section":"referral_config","state":"fresh","data":{"id":9}}');
  held.release();
  expect(await lines.rest()).toEqual([lineOf('notifications'), COMPLETE]);
  upstream.next('getSubscription', withCard('null'), answer(500));
  const only = `${ACCOUNT}?sections=payment_method`;
  const none = '{"section":"payment_method","state":"not_applicable","data":null}';
  expect(await (await open(only)).rest()).toEqual([none, COMPLETE]);
  const skipped = await (await open(only)).rest();
  expect(skipped).toEqual([expect.stringMatching(/^\{"section":"payment_method","state":"skipped","error":/), PARTIAL]);
});

test('it is whole in time where a section hangs, and says the code of an old one', async () => {
  const token = secret();
  await call(ACCOUNT, { token });
  await pass(400);
  upstream.next('listNotifications', reset(), reset(), reset());
  const old = (await (await open(ACCOUNT, { token })).rest()).find((line) => line.includes('"notifications"'));
  expect(old).toContain('{"section":"notifications","state":"stale","code":"upstream_unreachable","data":{');
  upstream.next('listNotifications', hang());
  const { next, rest } = await open();
  for (let count = 1; count < 4; count++) expect(await next()).not.toContain('"notifications"');
  await pass(5);
  expect([await next(), await rest()]).toEqual([expect.stringContaining('"upstream_timeout"'), [PARTIAL]]);
});

test('any failure with handling=strict is a problem, and it begins when all is there', async () => {
  upstream.next('listNotifications', answer(500));
  expect((await open(ACCOUNT, { Prefer: 'handling=strict' })).status).toBe(502);
  const { headers, rest } = await open(ACCOUNT, { Prefer: 'handling=strict' });
  expect(headers.get('preference-applied')).toBe('handling=strict');
  expect(await rest()).toEqual([...Object.keys(SECTIONS[ACCOUNT]!).map((name) => lineOf(name)), COMPLETE]);
});

test.each([
  ['application/x-ndjson;q=0.9, application/json;q=0.8, */*;q=0.1', true],
  ['text/html, application/x-ndjson;q=0.1', true],
  ['application/json, application/x-ndjson;q=0.5', false],
  ['application/x-ndjson;q=0, */*', false],
])('Accept: %s has lines: %s', async (Accept, isLines) => {
  const { headers, text } = await call(ACCOUNT, { headers: { Accept } });
  expect(headers.get('content-type')).toBe(isLines ? 'application/x-ndjson' : 'application/json');
  expect(headers.get('vary')).toContain('Accept');
  expect(/\n\{"complete":true,[^\n]+\n$/.test(text)).toBe(isLines);
});

test('a client that leaves in mid stream ends what only it waited for, and is no error', async () => {
  const [token, leaving] = [secret(), new AbortController()];
  const [notifications, list] = [upstream.hold('listNotifications'), upstream.hold('listPaymentMethods')];
  const read = call('/api/v2/payment/method/', { token });
  await list.call;
  const { body } = await request(ACCOUNT, { token, headers: LINES, signal: leaving.signal });
  const reader = body!.getReader();
  await reader.read();
  leaving.abort();
  await reader.cancel();
  await notifications.call.then(({ left }) => left);
  for (const { release } of [list, notifications]) release();
  expect(await read).toMatchObject({ status: 200, version: 1 });
  const line = log.findLast(({ route }) => route === ACCOUNT);
  expect(line).toMatchObject({ level: 'info', status: 200, code: 'client_left' });
});
