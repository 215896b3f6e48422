import { GatewayError } from '../core/errors.ts';
import type { Read } from '../upstream/call.ts';
import type { RequestContext } from '../cache/reader.ts';
import { planOf, readsOf } from './compose.ts';
import type { Gateway } from './gateway.ts';
import { accountOverview } from './overviews.ts';

/** What the first overview after a sign-in will read, the subscription first. */
const sections = planOf(accountOverview, Object.keys(accountOverview.sections));
const [FIRST, ...OTHERS] = readsOf({ sections }, () => undefined) as [Read, ...Read[]];

/** The request, as if it had come with this token. Its account is not counted. */
function contextOf(
  context: RequestContext,
  as: Pick<RequestContext, 'credential' | 'account' | 'wants'>,
): RequestContext {
  const { requestId, trace, userAgent, address, origin, mount, startedAt, endsAt, waitUntil } = context;
  // What does not prove the token goes on when the request is over.
  const signal = as.wants === 'no-cache' ? context.signal : new AbortController().signal;
  const client = { requestId, trace, userAgent, address, origin, mount, startedAt, endsAt, waitUntil, signal };
  return { ...client, ...as, upstreamCalls: 0, upstreamMs: 0 };
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
) {
  const account = (context.account = await gateway.sessions.accountOf(token));
  const as = { credential: token, account, wants: 'any' } as const;
  const own = contextOf(context, { ...as, wants: isProven ? 'any' : 'no-cache' });
  const first = await gateway.sessions.reader(own, [FIRST], id);
  if (first.snapshot.session?.isLocal) throw GatewayError.of('store_unavailable', { retryAfter: 1 });
  const reading = gateway.read(FIRST, first);
  try {
    if (!isProven) await reading;
  } finally {
    context.upstreamCalls += own.upstreamCalls;
    context.upstreamMs += own.upstreamMs;
  }
  context.waitUntil(warm(gateway, contextOf(context, as), reading));
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
