import { expect } from 'vitest';
import { type BodyFlaw, noAnswer, type RawAnswer } from '../../../src/upstream/transport.ts';
import type { Answer, Asked, Asking } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { answer, hang, refused, reset } from '../../support/upstream.ts';

export const DAY = 86_400;

/** A good answer that is not a replay. */
export const FIRST = /^20\d( \{.*\})?$/s;
export const IN_PROGRESS = '409 idempotency_in_progress';
export const REUSED = '422 idempotency_key_reused';
export const UNKNOWN = '409 outcome_unknown unknown';

/**
 * What a client learns of its request: `200 {…}`, `200 {…} replayed`, `400 card_declined`, `502 upstream_unreachable unknown`.
 * Whatever goes for each answer of its kind is looked at here.
 */
export function summaryOf(given: Answer): string {
  const { status, text, headers } = given;
  const replayed = headers.get('idempotency-replayed') === 'true' ? ' replayed' : '';
  if (status < 300) return `${status} ${text}`.trim() + replayed;
  const { code, outcome, retryable, detail, retry_after } = given.json;
  if (code === 'idempotency_in_progress') expect([headers.get('retry-after'), retryable]).toEqual(['1', true]);
  if (outcome === undefined) return `${status} ${code}${replayed}`;
  expect([headers.get('retry-after'), retry_after, retryable]).toEqual([null, undefined, false]);
  expect(detail).toMatch(/the write may have happened/i);
  return `${status} ${code} ${outcome}${replayed}`;
}

/** What comes of a purchase, in a word. */
export async function buy({ ask }: Pick<Asked, 'ask'>, order: Asking): Promise<string> {
  const { status, code, headers } = await ask('purchasePlan', order);
  return code ?? `${status}${headers.get('Idempotency-Replayed') === 'true' ? ' replayed' : ''}`;
}

/** Calls, each of an account of its own, fail until the circuit is open, on each of two instances. Scripts are forgotten. */
export async function openCircuit({ ask, upstream }: Pick<Asked, 'ask' | 'upstream'>): Promise<void> {
  for (let bad = 0; bad < 50; bad++) {
    upstream.next('createApiKey', answer(500));
    await ask('createApiKey', { token: secret() });
  }
  upstream.clear();
}

const flawed = (status: number, flaw: BodyFlaw) => ({ ...answer(status), body: { flaw } });
const html = { 'content-type': 'text/html' };

/** What another gateway says that finds itself in `Via`: the upstream has never seen the write. */
const LOOP = answer(508, { type: '/problems/loop_detected', code: 'loop_detected', retryable: false, request_id: 'r' });

/** What the upstream does with a write, and what its client is told. */
type Ending = readonly [name: string, reply: RawAnswer | Error | 'hang', seen: string];

/** After each of these the money may be gone, or not. */
export const UNKNOWNS: readonly Ending[] = [
  ['500', answer(500), '502 upstream_bad_response'],
  ['502', answer(502), '502 upstream_bad_response'],
  ['503', answer(503, '', { 'retry-after': '1' }), '503 upstream_unavailable'],
  ['504', answer(504), '504 upstream_timeout'],
  ['a foreign 508', answer(508, { code: 'loop_detected' }), '502 upstream_bad_response'],
  ['a connection that breaks', reset(), '502 upstream_unreachable'],
  ['no answer in time', hang(), '504 upstream_timeout'],
  ['HTML', answer(200, '<html>', html), '502 upstream_bad_response'],
  ['a redirect', answer(302, '', { location: '/' }), '502 upstream_bad_response'],
  ['JSON that is none', answer(200, '{"payment_required":'), '502 upstream_bad_response'],
  ['an answer that breaks off', flawed(200, 'cut_short'), '502 upstream_bad_response'],
  ['one that is too large', flawed(200, 'too_large'), '502 upstream_bad_response'],
  ['what is not HTTP', noAnswer('malformed', 'bad_body'), '502 upstream_bad_response'],
  ['a fault of ours', new TypeError('a bug'), '500 internal_error'],
];

/** Seconds for which a 429 holds the account back. */
export const HOLD = 3;
const no = (status: number) => answer(status, { detail: 'No.' }, { 'retry-after': String(HOLD) });

/** After each of these nothing has happened. */
export const PROOFS: readonly Ending[] = [
  ['400', answer(400, [{ message: 'Declined.', code: 'card_declined' }]), '400 card_declined'],
  ['401', no(401), '401 unauthenticated'],
  ['402', no(402), '402 payment_required'],
  ['403', no(403), '403 forbidden'],
  ['404', answer(404, '<html>', html), '404 not_found'],
  ['409', no(409), '409 conflict'],
  ['422', no(422), '422 unprocessable_content'],
  ['429', no(429), '429 rate_limited'],
  ['a refusal that breaks off', flawed(403, 'cut_short'), '403 forbidden'],
  ['a loop', LOOP, '508 loop_detected'],
  ['no connection', refused(), '502 upstream_unreachable'],
  ['no connection in time', noAnswer('connect_timeout', 'timeout'), '504 upstream_timeout'],
];
