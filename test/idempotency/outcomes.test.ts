import { describe, expect, test } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { DAY_SECONDS, differentFrom, gist, good, goodGist, openShop, REUSED, type Shop, UNKNOWN } from './helpers.ts';
import { manualClock } from '../support/clock.ts';
import { bodyOf } from '../support/marked.ts';
import { bytes, close, hang, httpResponse, json, reply, reset, type Step } from '../support/scripted-upstream.ts';
import { memoryStore } from '../support/stores.ts';
import { postIds } from '../support/table.ts';

const HTML = { 'Content-Type': 'text/html' };

/** After each of these the money may be gone, or not. */
const OUTCOMES: readonly (readonly [name: string, seen: string, step: (good: string) => Step])[] = [
  ['500', '502 upstream_bad_response', () => json(500)],
  ['502', '502 upstream_bad_response', () => json(502)],
  ['503', '503 upstream_unavailable', () => json(503, '', { 'Retry-After': '1' })],
  ['504', '504 upstream_timeout', () => json(504)],
  ['a reset', '502 upstream_unreachable', () => reset()],
  ['a connection that closes', '502 upstream_unreachable', () => close()],
  ['no answer in time', '504 upstream_timeout', () => hang()],
  ['no end of the answer in time', '504 upstream_timeout', (body) => reply(bytes(cutOff(body)), hang())],
  ['HTML with status 200', '502 upstream_bad_response', () => bytes(httpResponse(200, '<html>', HTML))],
  ['a redirect', '502 upstream_bad_response', () => json(302, '', { Location: '/' })],
  ['an answer that breaks off', '502 upstream_bad_response', (body) => reply(bytes(cutOff(body)), close())],
  ['JSON that is none', '502 upstream_bad_response', () => json(200, '{"payment_required":')],
  ['bytes that are not HTTP', '502 upstream_bad_response', () => reply(bytes('SMTP ready\r\n\r\n'), close())],
];

const cutOff = (body: string) => httpResponse(200, body === '' ? '{"id":1}' : body).subarray(0, -3);

/** Asks, and lets the time of a call pass where nothing else ends it. */
const unanswered = async (shop: Shop, id: OperationId, isLate: boolean) => {
  const asked = shop.keyed(id);
  await shop.upstream.waitForCalls(1);
  if (isLate) shop.advance(5);
  return asked;
};

describe.each(postIds)('%s with a key', (id) => {
  test.each(OUTCOMES)('that gets %s may have been carried out, and is never sent again', async (name, seen, step) => {
    const shop = await openShop();
    shop.script(id, step(bodyOf(id, 1)));
    expect(gist(await unanswered(shop, id, name.endsWith('in time')))).toBe(`${seen} unknown`);
    expect(gist(await shop.keyed(id))).toBe(UNKNOWN);
    expect(gist(await shop.keyed(id, differentFrom(id)))).toBe(REUSED);
    shop.advance(DAY_SECONDS - 6);
    expect(gist(await shop.keyed(id))).toBe(UNKNOWN);
    expect(shop.upstream.calls).toHaveLength(1);
  });
});

const fail = () => {
  throw new TypeError('a bug');
};

test('a fault of ours after a purchase was sent says that nobody knows, and keeps its key', async () => {
  const shop = await openShop({}, { store: Object.assign(memoryStore(manualClock()), { accept: fail }) });
  shop.script('purchasePlan', json(200, bodyOf('purchasePlan', 1)));
  const first = await shop.keyed('purchasePlan');
  expect(gist(first)).toBe('500 internal_error unknown');
  expect(JSON.parse(first.text)).toMatchObject({
    retryable: false,
    detail: expect.stringContaining('may have happened'),
  });
  expect(gist(await shop.keyed('purchasePlan'))).toBe(UNKNOWN);
  expect(shop.gateway.lines.filter(({ msg }) => msg === 'internal error')).toMatchObject([
    { fault: expect.stringContaining('TypeError') },
  ]);
});

/** What proves that nothing happened, and the code that it goes by. */
const PROOFS = [
  [400, 'bad_request'],
  [401, 'unauthenticated'],
  [402, 'payment_required'],
  [403, 'forbidden'],
  [404, 'not_found'],
  [409, 'conflict'],
  [422, 'unprocessable_content'],
  [429, 'rate_limited'],
] as const;

const HOLD_SECONDS = 3;

describe.each(postIds)('%s with a key', (id) => {
  test.each(PROOFS)('that the upstream refuses with %i can be sent again with the key', async (status, code) => {
    const shop = await openShop();
    shop.script(id, json(status, '{"detail":"No."}', { 'Retry-After': String(HOLD_SECONDS) }), good(id, 1));
    const refused = await shop.keyed(id);
    expect(gist(refused)).toBe(`${status} ${code}`);
    shop.advance(HOLD_SECONDS);
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1, { isReplay: true }));
    expect(shop.upstream.calls).toHaveLength(2);
  });

  test('that the upstream refuses can be followed by another request with the key', async () => {
    const shop = await openShop();
    const other = differentFrom(id);
    shop.script(id, json(400, '[{"message":"Declined.","code":"card_declined"}]'));
    expect(gist(await shop.keyed(id))).toBe('400 card_declined');
    shop.upstream.once(({ target }) => target === other.path, good(id, 2));
    expect(gist(await shop.keyed(id, other))).toBe(goodGist(id, 2));
    expect(gist(await shop.keyed(id))).toBe(REUSED);
  });

  test('that a refusal breaks off of is refused all the same', async () => {
    const shop = await openShop();
    shop.script(id, reply(bytes(httpResponse(403, '{"detail":"No."}').subarray(0, -3)), close()), good(id, 1));
    expect(gist(await shop.keyed(id))).toBe('403 forbidden');
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
  });

  test('that finds the upstream’s port closed can be sent when it is open', async () => {
    const shop = await openShop({}, { hasDoor: true });
    await shop.door?.shut();
    expect(gist(await shop.keyed(id))).toBe('502 upstream_unreachable');
    await shop.door?.open();
    shop.script(id, good(id, 1));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1, { isReplay: true }));
    expect(shop.upstream.calls).toHaveLength(1);
  });
});
