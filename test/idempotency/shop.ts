import { expect, onTestFinished } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import { allOperations, type OperationId, operations } from '../../src/upstream/operations/index.ts';
import { bodyOf, callOf, clockOfDeadlines } from '../cache/world.ts';
import { type Door, openDoor } from '../faults/door.ts';
import { expectCommonHeaders, expectProblem } from '../http/problem.ts';
import type { ManualClock } from '../support/clock.ts';
import { exampleInput } from '../support/examples.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { json, type ScriptedUpstream, startUpstream, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

export const DAY_SECONDS = 86_400;

/** Every POST of the table. */
export const postIds: readonly OperationId[] = allOperations
  .filter(({ method }) => method === 'POST')
  .map(({ id }) => id);

const rowOf = (id: OperationId): Operation => operations[id];

export const bodiedIds = postIds.filter((id) => rowOf(id).body);
export const bodilessIds = postIds.filter((id) => !rowOf(id).body);
export const itemIds = postIds.filter((id) => rowOf(id).idForm);
export const socialIds = postIds.filter((id) => rowOf(id).credential === 'none');
export const accountIds = postIds.filter((id) => rowOf(id).credential !== 'none');

type Request = Pick<CallOptions, 'path' | 'body'>;

/** The example with one thing in it changed, of which the operation still approves. */
const DIFFERENT: Readonly<Partial<Record<OperationId, Partial<Request>>>> = {
  startIdVerification: { body: undefined },
  refreshSubuser: { path: '/api/v2/subuser/54321/refresh/' },
  refreshProxyList: { path: '/api/v2/proxy/list/refresh/?plan_id=3' },
};

export const requestOf = (id: OperationId): Request => {
  const { path, body } = exampleInput(id);
  return { path, body };
};

export const differentFrom = (id: OperationId): Request => {
  const { path, body = '{}' } = requestOf(id);
  return { path, body: String(body).replace('{', '{"x_other":1,'), ...DIFFERENT[id] };
};

/** The same body, members the other way round, spaced and escaped. */
export const reprinted = (body: unknown): string => {
  const members = Object.entries(JSON.parse(String(body)) as Record<string, unknown>);
  const texts = members.map(([name, value]) => `${escaped(name)} :\t${JSON.stringify(value, null, 2)}`);
  return `\n{ ${texts.toReversed().join(' ,\r\n')} } `;
};

const escaped = (name: string) => `"${Array.from(name, (char) => `\\u${hexOf(char)}`).join('')}"`;
const hexOf = (char: string) => char.charCodeAt(0).toString(16).padStart(4, '0');

/** A good answer that no other is like. */
export const good = (id: OperationId, mark: number): Step => {
  const text = bodyOf(id, mark);
  return text === '' ? json(204) : json(201, text);
};

export type Asking = Partial<CallOptions> & { readonly key?: string };

interface ShopOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The door is there to be shut. */
  readonly hasDoor?: boolean;
  readonly store?: Store;
}

let keys = 0;

/** A gateway in front of an upstream that nobody has told what to do; with one client and one key of his. */
export class Shop {
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
  readonly clock: ManualClock;
  readonly token = secret();
  readonly key = `key-${++keys}`;
  readonly door: Door | undefined;

  constructor(parts: Pick<Shop, 'upstream' | 'gateway' | 'clock' | 'door'>) {
    this.upstream = parts.upstream;
    this.gateway = parts.gateway;
    this.clock = parts.clock;
    this.door = parts.door;
  }

  advance(seconds: number): void {
    this.clock.advance(seconds * 1000);
  }

  /** Without a key. */
  ask(id: OperationId, { key, headers, ...options }: Asking = {}): Promise<TextAnswer> {
    return call(this.gateway.url, {
      method: rowOf(id).method,
      token: this.token,
      ...requestOf(id),
      ...options,
      headers: { ...(key !== undefined && { 'Idempotency-Key': key }), ...headers },
    });
  }

  /** With the key. */
  keyed(id: OperationId, options: Asking = {}): Promise<TextAnswer> {
    return this.ask(id, { key: this.key, ...options });
  }

  /** What the upstream answers to the operation, once each; what is asked beyond that fails the test. */
  script(id: OperationId, ...steps: readonly Step[]): void {
    this.upstream.once(callOf(id), ...steps);
  }
}

export async function openShop({ env = {}, hasDoor = false, store }: ShopOptions = {}): Promise<Shop> {
  const upstream = await startUpstream();
  const door = hasDoor ? await openDoor(upstream.url) : undefined;
  const clock = clockOfDeadlines();
  const gateway = await startGateway(door?.url ?? upstream.url, {
    env: { RATE_LIMIT_PER_MINUTE: '0', ...env },
    clock,
    ...(store && { store }),
  });
  onTestFinished(async () => {
    await door?.shut();
    await upstream.close();
    await gateway.close();
    upstream.assertNoUnexpected();
  });
  return new Shop({ upstream, gateway, clock, door });
}

/** What a test compares of an answer, which is checked to be a whole one: what it says, and whether it is a replay. */
export const gist = (answer: TextAnswer): string => {
  const replayed = answer.headers['idempotency-replayed'];
  const suffix = replayed === undefined ? '' : ` replayed=${replayed}`;
  if (answer.status < 300) {
    expectCommonHeaders(answer);
    expect(answer.headers['cache-control']).toBe('no-store');
    return `${answer.status} ${answer.text}`.trim() + suffix;
  }
  const { code } = answer.json as { readonly code: string };
  const { outcome } = expectProblem(answer, { status: answer.status, code });
  return `${answer.status} ${code}${outcome === undefined ? '' : ` ${outcome}`}${suffix}`;
};

/** What `good` makes of an answer. */
export const goodGist = (id: OperationId, mark: number, { isReplay = false } = {}): string => {
  const text = bodyOf(id, mark);
  return `${text === '' ? '204' : `201 ${text}`}${isReplay ? ' replayed=true' : ''}`;
};

export const IN_PROGRESS = '409 idempotency_in_progress';
export const REUSED = '422 idempotency_key_reused';
export const UNKNOWN = '409 outcome_unknown';
