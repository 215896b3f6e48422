import { cacheKeyOf } from '../cache/key.ts';
import { Reader } from '../cache/reader.ts';
import { andThen, type Soon } from '../core/soon.ts';
import type { acceptedAccounts } from '../resilience/gates.ts';
import type { SnapshotRequest } from '../store/store.ts';
import type { CopyOf, Read } from '../upstream/call.ts';
import type { RequestContext } from '../upstream/request-context.ts';
import type { GatewayDeps } from './deps.ts';

/** The accounts that the upstream has accepted: whose share a request takes. */
export type Accepted = ReturnType<typeof acceptedAccounts>;

/** What a request will read, judging by the copies that this instance has. */
export type ReadsOf = (copyOf: CopyOf) => readonly Read[];

export type ReaderOf = ReturnType<typeof readers>;

/** Makes readers, each by one question to the store: for what it will read, its window, if any, and its session. */
export function readers({ config, store, clock, digest, metrics }: GatewayDeps, accepted: Accepted) {
  const { policyOf } = config;
  return (
    context: RequestContext,
    reads: ReadsOf,
    { window, session }: Pick<SnapshotRequest, 'window' | 'session'>,
  ): Soon<Reader> =>
    andThen(context.account ?? digest.account(context.credential), (account) => {
      context.account = account;
      const owner = (context.owner = accepted.ownerOf(account, context));
      const keyOf = (read: Read) => cacheKeyOf(account, read, policyOf(read.operation));
      const asked = store.snapshot({
        account,
        owner,
        now: clock.now(),
        window,
        keys: (copyOf) => reads((read) => copyOf(keyOf(read))).map(keyOf),
        fetches: context.wants === 'any',
        session,
        waitUntil: context.waitUntil,
      });
      return andThen(asked, (snapshot) => {
        context.snapshot = snapshot;
        return new Reader({ context, account, owner, snapshot }, { clock, metrics, policyOf });
      });
    });
}
