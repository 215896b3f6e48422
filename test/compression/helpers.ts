import { openWorld } from '../support/world.ts';
import type { CallOptions } from '../support/http.ts';
import { receive } from './bytes.ts';

/** With it each good body is worth compressing. */
export const MARK = 'é'.repeat(600);

/** A gateway whose upstream answers all calls with large bodies. `accepted`: the request's `Accept-Encoding`. */
export async function openLarge(...args: Parameters<typeof openWorld>) {
  const world = await openWorld(...args);
  world.answerAll(() => MARK);
  const take = (asked: CallOptions, accepted?: string) =>
    receive(world.gateway.url, { token: world.token, ...asked }, accepted);
  return { ...world, take };
}
