import { expect, onTestFinished, vi } from 'vitest';
import {
  type CallOptions,
  type ClientOptions,
  createClient,
  type OperationId,
  type Portico,
  PorticoProblem,
  type Problem,
} from '../../client/src/index.ts';
import { json, type ScriptedUpstream, startUpstream, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { type Env, openWorld, type World } from '../support/world.ts';

export const SUBSCRIPTION = 'GET /api/v2/subscription/';
export const PURCHASE = 'POST /api/v2/subscription/checkout/purchase/';
/** What there is to buy. */
export const PLAN = { proxy_type: 'shared', proxy_countries: { US: 5 }, term: 'monthly' } as const;
export const BOUGHT = { plan: 2001 } as const;

/** A gateway before a scripted upstream, and a client of it. */
export async function openClient(
  env: Env = {},
  options: ClientOptions = {},
): Promise<World & { readonly portico: Portico }> {
  const world = await openWorld(env);
  return { ...world, portico: createClient({ url: world.gateway.url, token: world.token, ...options }) };
}

interface StandIn {
  readonly gateway: ScriptedUpstream;
  readonly token: string;
  readonly portico: Portico;
  /** Another client of it. */
  readonly clientWith: (options: ClientOptions) => Portico;
}

/** A client of a server that stands for the gateway, and does what the test says. */
export async function openStandIn(options: ClientOptions = {}): Promise<StandIn> {
  const gateway = await startUpstream();
  onTestFinished(async () => {
    await gateway.close();
    gateway.assertNoUnexpected();
  });
  const token = secret();
  const clientWith = (more: ClientOptions) => createClient({ url: gateway.url, token, ...more });
  return { gateway, token, portico: clientWith(options), clientWith };
}

export type AnyCall = (input?: object, options?: CallOptions) => Promise<unknown>;

/** Any operation of the table, which types know one by one. */
export const callTo = (portico: Portico, id: OperationId): AnyCall => portico[id] as AnyCall;

export const problemBody = (status: number, code: string, more: Partial<Problem> = {}): Problem => ({
  type: `/problems/${code}`,
  title: 'A title',
  status,
  code,
  detail: `A detail of ${code}.`,
  instance: '/asked',
  request_id: 'request-1',
  retryable: false,
  errors: [],
  ...more,
});

/** A problem as the gateway sends it. */
export const problem = (...given: Parameters<typeof problemBody>): Step =>
  json(given[0], problemBody(...given), { 'content-type': 'application/problem+json' });

/** What a call throws. */
export async function thrownBy(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error('it did not throw');
}

/** The problem that a call throws. */
export async function problemOf(call: Promise<unknown>): Promise<PorticoProblem> {
  const error = await thrownBy(call);
  expect(error).toBeInstanceOf(PorticoProblem);
  return error as PorticoProblem;
}

/** What is told of a problem in most tests. */
export const gistOf = ({ code, status, outcome }: PorticoProblem): string =>
  [code, status, ...(outcome ? [outcome] : [])].join(' ');

/** A time for which the client waits before another try. */
export interface Pause {
  readonly ms: number;
  readonly end: () => void;
}

interface Pauses {
  /** All so far, in milliseconds. */
  readonly lengths: readonly number[];
  /** The next one, when it begins. Each is told of once. */
  next(): Promise<Pause>;
  /** Ends a try of a watch that has no answer, as its clock does. */
  giveUp(): void;
}

/** Waits without `Retry-After`, as random as they are in these tests. */
export const FIRST_PAUSE = 250;
export const SECOND_PAUSE = 500;

/** The file of the client's that has called. */
const callerInClient = () => /client\/src\/(\w+)/.exec(new Error('for its stack').stack ?? '')?.[1];

/** The client's waits end when the test says so. All other timers are what they are. */
export function holdPauses(onPause: (pause: Pause) => void = () => undefined): Pauses {
  const lengths: number[] = [];
  const begun: Pause[] = [];
  let told = 0;
  let look: (() => void) | undefined;
  let giveUp: (() => void) | undefined;
  const { setTimeout } = globalThis;
  const hold = (run: () => void, ms = 0, ...rest: unknown[]) => {
    const file = callerInClient();
    if (file === undefined) return setTimeout(run, ms, ...rest);
    if (file === 'asking') giveUp = run;
    if (file !== 'send') return 0;
    lengths.push(ms);
    begun.push({ ms, end: run });
    onPause({ ms, end: run });
    look?.();
    return 0;
  };
  const spies = [
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(hold as typeof setTimeout),
    vi.spyOn(Math, 'random').mockReturnValue(0.5),
  ];
  onTestFinished(() => spies.forEach((spy) => spy.mockRestore()));
  return {
    lengths,
    giveUp: () => giveUp?.(),
    next: () =>
      new Promise((resolve) => {
        const number = told++;
        look = () => {
          if (begun.length > number) resolve(begun[number]!);
        };
        look();
      }),
  };
}

/** The client's waits pass by themselves. */
export const passPauses = (): readonly number[] => holdPauses(({ end }) => void setImmediate(end)).lengths;
