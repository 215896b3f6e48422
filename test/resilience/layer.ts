import { noMetrics } from '../../src/core/metrics.ts';
import type { Clock } from '../../src/core/runtime.ts';
import type { CallUpstream, RequestContext, UpstreamAnswer, UpstreamCall } from '../../src/upstream/call.ts';
import { operations } from '../support/account-api.ts';

const contextOf = (clock: Clock): RequestContext => ({
  requestId: 'r',
  credential: 'key',
  session: undefined,
  userAgent: undefined,
  idempotencyKey: undefined,
  wants: 'any',
  address: '',
  origin: '',
  mount: '',
  trace: { traceId: '0'.repeat(32), flags: '00', tracestate: undefined },
  startedAt: clock.now(),
  endsAt: clock.now() + 10_000,
  waitUntil: () => undefined,
  signal: new AbortController().signal,
  account: undefined,
  owner: undefined,
  limitUse: undefined,
  upstreamCalls: 0,
  upstreamMs: 0,
});

/** For a layer alone, where a gateway round it would blur what is asked. */
export const callFor = (clock: Clock, changes: Partial<UpstreamCall> = {}): UpstreamCall => ({
  account: 'account',
  owner: 'account',
  operation: operations.getSubscription,
  input: { query: '' },
  context: contextOf(clock),
  controller: new AbortController(),
  endsAt: clock.now() + 10_000,
  ...changes,
});

const GOOD: UpstreamAnswer = {
  status: 200,
  text: '{}',
  links: [],
  value: {},
  validators: {},
  isStorable: true,
  notModified: false,
};

/** What is round attempts that come out as `outcome` says. */
export const round = (
  layer: (next: CallUpstream) => CallUpstream,
  outcome: (call: UpstreamCall) => unknown,
): { call: CallUpstream; made: () => number } => {
  let calls = 0;
  const call = layer(async (one) => {
    calls++;
    await outcome(one);
    return GOOD;
  });
  return { call, made: () => calls };
};

export const metrics = noMetrics;

/** What became of it, for those who do not care for more. */
export const settled = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'good',
    (error: unknown) => error,
  );
