import { expect } from 'vitest';
import type { RawAnswer } from '../../../src/upstream/transport.ts';
import { type OperationId, operations } from '../../support/account-api.ts';
import { type Answer, type Asked, type Asking, type Env, openGateway } from '../../support/gateway.ts';
import { answer, type Reply } from '../../support/upstream.ts';

export const MISS = 'portico; fwd=miss; stored';
/** Asked for, and kept by nobody. */
export const UNKEPT = 'portico; fwd=miss';
export const hit = (ttl: number): string => `portico; hit; ttl=${ttl}`;
export const isHit = expect.stringMatching(/^portico; hit; ttl=\d+$/) as string;
export const isOld = expect.stringMatching(/^portico; hit; ttl=-\d+$/) as string;

export const NO_CACHE = { 'Cache-Control': 'no-cache' };
export const NO_STORE = { 'Cache-Control': 'no-store' };

/** How the cache came to an answer, and what was in it. */
export const seen = ({ status, cache, version }: Answer): readonly unknown[] => [status, cache, version];

/** An answer of the upstream's, whose version is not the account's. */
export const versioned = (version: number, headers: RawAnswer['headers'] = {}, status = 200): Reply =>
  answer(status, `{"x_version":${version}}`, headers);

/** A request whose call the upstream has got and not answered. Those who leave have no answer. */
export async function beginOn({ ask, upstream }: Pick<Asked, 'ask' | 'upstream'>, id: OperationId, asking?: Asking) {
  const held = upstream.hold(id);
  const asked = ask(id, asking).then(seen, () => 'left');
  const { left } = await held.call;
  return {
    left,
    end: (reply?: Reply) => {
      held.release(reply);
      return asked;
    },
  };
}

/** A gateway in this process. `see`: a whole request, in three words. */
export function openCache(env: Env = {}, more: Parameters<typeof openGateway>[1] = {}) {
  const gateway = openGateway(env, more);
  return {
    ...gateway,
    see: async (id: OperationId, asking?: Asking) => seen(await gateway.ask(id, asking)),
    begin: (id: OperationId, asking?: Asking) => beginOn(gateway, id, asking),
  };
}

/** The last row of the table. */
export const NEVER_CACHED = ['getPendingPayment', 'getApiKey', 'getVerificationFlow'] as const;
export const CACHED = (Object.keys(operations) as OperationId[]).filter(
  (id) => operations[id].method === 'GET' && !NEVER_CACHED.some((never) => never === id),
);

export const askAll = ({ ask }: Pick<Asked, 'ask'>, ids: readonly OperationId[], asking?: Asking): Promise<Answer[]> =>
  Promise.all(ids.map((id) => ask(id, asking)));

/** Each of two instances has its own copies then: of several keys two may have one place in their store. */
export const warm = (stage: Pick<Asked, 'ask'>, ids: readonly OperationId[], asking?: Asking): Promise<Answer[]> =>
  askAll(
    stage,
    ids.flatMap((id) => [id, id]),
    asking,
  );
