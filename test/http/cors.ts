import { expect } from 'vitest';

interface AnyAnswer {
  readonly headers: Readonly<Record<string, string>>;
}

export const LISTED = 'https://app.example';

/** As `contract.md` section 9 has them. */
export const EXPOSED =
  'ETag, Age, Cache-Status, Retry-After, RateLimit, RateLimit-Policy, Server-Timing, X-Request-Id, ' +
  'Idempotency-Replayed, Preference-Applied';

/** All that an answer says to a browser about other origins. */
export const saidOf = ({ headers }: AnyAnswer) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => /^(access-control|timing-allow)-/.test(name)));

export const varyOf = ({ headers }: AnyAnswer) => headers['vary']?.split(/, */) ?? [];

export const originHeaders = (origin: string) => ({
  'access-control-allow-origin': origin,
  'access-control-expose-headers': EXPOSED,
  'timing-allow-origin': origin,
});

/** `withCookies`: whether there are sessions. */
export function expectShown(answer: AnyAnswer, origin = LISTED, withCookies = false): void {
  const credentials = withCookies && { 'access-control-allow-credentials': 'true' };
  expect(saidOf(answer)).toEqual({ ...originHeaders(origin), ...credentials });
  expect(varyOf(answer)).toContain('Origin');
}

export function expectHidden(answer: AnyAnswer): void {
  expect(saidOf(answer)).toEqual({});
  expect(varyOf(answer)).toContain('Origin');
}
