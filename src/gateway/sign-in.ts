import { GatewayError } from '../core/errors.ts';
import type { AccountId } from '../store/store.ts';
import type { Read } from '../upstream/request.ts';
import type { RequestContext } from '../upstream/request-context.ts';
import { planOf, readsOf } from './compose.ts';
import type { Gateway } from './gateway.ts';
import { accountOverview } from './overviews.ts';

/** What the first overview after a sign-in will read, the subscription first. */
function readsOfOverview(): [Read, ...Read[]] {
  const wanted = Object.keys(accountOverview.sections);
  const composition = { overview: accountOverview, wanted, sections: planOf(accountOverview, wanted), strict: false };
  return readsOf(composition, () => undefined) as [Read, ...Read[]];
}

const [FIRST, ...OTHERS] = readsOfOverview();

/** The request, as if it had come with this token. Its account is not counted. */
function contextOf(context: RequestContext, token: string, account: AccountId, wants: RequestContext['wants']) {
  const { requestId, trace, userAgent, address, origin, startedAt, endsAt, waitUntil, signal } = context;
  const client = { requestId, trace, userAgent, address, origin, startedAt, endsAt, waitUntil };
  const isOwn = wants === 'no-cache'; // else it goes on when the request is over
  return {
    ...client,
    signal: isOwn ? signal : new AbortController().signal,
    credential: token,
    account,
    owner: undefined,
    wants,
    session: undefined,
    idempotencyKey: undefined,
    snapshot: undefined,
    counted: undefined,
    upstreamCalls: 0,
    upstreamMs: 0,
  } satisfies RequestContext;
}

interface SignedIn {
  readonly account: AccountId;
  /** Of the account's sessions. */
  readonly epoch: number;
}

/**
 * Begins a session with a token: learns the epoch of the account's sessions, and reads what its first overview will want, in
 * the background. `isProven`: the upstream has just given the token; else it has to answer one read with it first.
 * @throws GatewayError what that read is refused with
 */
export async function signIn(
  gateway: Gateway,
  context: RequestContext,
  { token, id, isProven }: { readonly token: string; readonly id: string; readonly isProven: boolean },
): Promise<SignedIn> {
  const account = await gateway.sessions.accountOf(token);
  context.account = account;
  const own = contextOf(context, token, account, isProven ? 'any' : 'no-cache');
  const first = await gateway.sessions.reader(own, [FIRST], id);
  if (first.snapshot.session?.isLocal) throw GatewayError.of('store_unavailable', { retryAfter: 1 });
  const reading = gateway.read(FIRST, first);
  try {
    if (!isProven) await reading;
  } finally {
    context.upstreamCalls += own.upstreamCalls;
    context.upstreamMs += own.upstreamMs;
  }
  context.waitUntil(warm(gateway, contextOf(context, token, account, 'any'), reading));
  return { account, epoch: first.snapshot.session?.epoch ?? 0 };
}

/** The first read shows whether the account may read at all: a refused one costs one call, not four. */
async function warm(gateway: Gateway, context: RequestContext, first: Promise<unknown>): Promise<void> {
  try {
    await first;
    const reader = await gateway.sessions.reader(context, OTHERS);
    await Promise.allSettled(OTHERS.map((read) => gateway.read(read, reader)));
    reader.snapshot.end?.();
  } catch {
    // The first overview tells.
  }
}
