import { afterAll, expect, test } from 'vitest';
import { patternOf } from '../../src/upstream/refusal.ts';
import { inProcess } from '../gateway/in-process.ts';

/** An expression that looks at pairs of so many characters is still at it when the time of a test is over. */
const LENGTH = 400_000;

const DETAIL = 'a'.repeat(LENGTH);
const gateway = inProcess({
  transport: async () => ({ status: 400, headers: {}, body: { text: JSON.stringify({ detail: DETAIL }) } }),
});
afterAll(() => gateway.close());

const READ = '/api/v2/subscription/';
const OVERVIEW = '/bff/v1/account-overview';
/** What is said again and again, between a beginning that lets it in and an end that does not. */
const long = (before: string, again: string, after: string) => before + again.repeat(LENGTH / again.length) + after;

test.each<readonly [string, string, string]>([
  ['Authorization', READ, long('Token', ' ', 'a b')],
  ['Accept-Encoding', READ, long('', 'gzip;q=', '')],
  ['Cache-Control', READ, long('', 'no-cache', '')],
  ['Content-Type', '/bff/v1/batch', long('application/json', ' ', '!')],
  ['Content-Type', '/bff/v1/batch', long('application/json', '; charset  =', '')],
  ['Idempotency-Key', '/bff/v1/outcome', long('', 'a', ' ')],
  ['If-None-Match', READ, long('', 'W/', '')],
  ['If-None-Match', OVERVIEW, long('"a"', ' ', 'a')],
  ['If-None-Match', OVERVIEW, long('"', 'a234567890123456.', '*"')],
  ['Prefer', OVERVIEW, long('', '"', '\\')],
  ['Prefer', OVERVIEW, long('', '"\\', ';')],
  ['traceparent', READ, long(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`, '-', '.')],
  ['tracestate', READ, long('', 'a=b,', '')],
  ['Via', READ, long('', 'portico-01234567890 ', '')],
  ['X-Request-Id', READ, long('', 'a', '!')],
  ['Origin', READ, long('http://', 'a', '!')],
])('%s of many characters is read once: %s', async (name, path, value) => {
  const method = name === 'Content-Type' ? 'POST' : 'GET';
  const { status } = await gateway.ask(path, 'a', { method, headers: { [name]: value } });
  expect(status).toBeLessThan(500);
});

test.each([
  ['a path', long('/api/v2/payment/method/', '1', '!')],
  ['a path of dots', long('', '/..a', '%')],
  ['a date', `/api/v2/proxy/activity/?timestamp__gte=${long('2026-01-01T00:00:00.', '1', '')}`],
  ['a name of sections', long(`${OVERVIEW}?sections=`, 'sectio', '')],
])('%s of many characters is read once', async (_, target) => {
  expect((await gateway.ask(target, 'a')).status).toBeLessThan(500);
});

test('a credential that the upstream nearly says again is looked for once', () => {
  const pattern = patternOf(`${'a'.repeat(LENGTH - 1)}b`, 'g');
  expect(`${DETAIL}!`.replaceAll(pattern, '…')).toMatch(/^…+!?$/);
});
