import { expect } from 'vitest';
import { expectProblem } from '../http/problem.ts';
import type { TextAnswer } from '../support/http.ts';
import { openWorld, type World, type Env } from '../support/world.ts';

/** A gateway that takes so many requests of an account in a minute, before an upstream that answers all of them. */
export const openLimited = async (perMinute: number, env: Env = {}): Promise<World> => {
  const world = await openWorld({ RATE_LIMIT_PER_MINUTE: String(perMinute), ...env });
  world.answerAll();
  return world;
};

/** What an answer says of the limit: whose, how many a minute (a 304 does not say), how many left, until when. */
export const limitOf = ({ headers }: Pick<TextAnswer, 'headers'>): readonly unknown[] => {
  const policy = /^"(\w+)";q=(\d+);w=60$/.exec(headers['ratelimit-policy'] ?? '');
  const limit = /^"(\w+)";r=(\d+);t=(\d+)$/.exec(headers['ratelimit'] ?? '');
  if (!limit) return [headers['ratelimit-policy'], headers['ratelimit']];
  expect(limit[1]).toBe(policy?.[1] ?? limit[1]);
  return [limit[1], policy ? Number(policy[2]) : undefined, Number(limit[2]), Number(limit[3])];
};

export const NO_LIMIT = [undefined, undefined];

/** Seconds to wait, which the headers say too. */
export const limitedFor = (answer: TextAnswer): unknown => {
  const problem = expectProblem(answer, { status: 429, code: 'rate_limited' });
  expect(problem.retryable).toBe(true);
  const [, , left, seconds] = limitOf(answer);
  expect([left, seconds]).toEqual([0, problem.retry_after]);
  return problem.retry_after;
};
