import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Method } from '../../src/upstream/operation.ts';
import { matchPath } from '../../src/upstream/match.ts';
import type { OperationId } from '../../src/upstream/operations/index.ts';
import { bodyOf, markOf } from '../cache/world.ts';
import { exampleInput } from '../support/examples.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import {
  type Barrier,
  barrier,
  type Call,
  hold,
  json,
  perCall,
  reply,
  type ScriptedUpstream,
  startUpstream,
  type Step,
} from '../support/scripted-upstream.ts';
import { cardLast4, email, secret } from '../support/secrets.ts';
import { startBareWorkers, type WorkerFleet } from './bare-worker.ts';

const CLIENT_SECRET = secret('client');
const EMAIL = email();

/** The example answer with this mark in it, and with secrets where the upstream has some. */
const marked = (id: OperationId, mark: number): string =>
  bodyOf(id, mark)
    .replaceAll('<CLIENT_SECRET>', CLIENT_SECRET)
    .replaceAll('<EMAIL>', EMAIL)
    .replaceAll('"4242"', JSON.stringify(cardLast4));

const PURCHASE_BODY = JSON.stringify({
  ...(JSON.parse(exampleInput('purchasePlan').body ?? '{}') as object),
  recaptcha: secret('recaptcha'),
});

const tokenOf = ({ headers }: Call) => String(headers['authorization']).replace('Token ', '');

const idOf = ({ method, path }: Call): OperationId => {
  const operation = matchPath(path)?.methods.get(method as Method);
  if (!operation) throw new Error(`${method} ${path} is no operation`);
  return operation.id as OperationId; // one of the table, which `match` reads too
};

type Asking = Partial<CallOptions> & { readonly key?: string };

/** Isolates of one workerd, and an upstream which keeps a version of each account's state, raised by its writes. */
export class Isolates {
  readonly upstream: ScriptedUpstream;
  fleet: WorkerFleet;
  readonly #versions = new Map<string, number>();

  constructor(upstream: ScriptedUpstream, fleet: WorkerFleet) {
    this.upstream = upstream;
    this.fleet = fleet;
    upstream.on(({ headers }) => 'authorization' in headers, this.#answer());
  }

  get urls(): readonly string[] {
    return this.fleet.urls;
  }

  versionOf(token: string): number {
    return this.#versions.get(token) ?? 1;
  }

  /** The account is changed, and nobody tells the gateway. */
  change(token: string): void {
    this.#versions.set(token, this.versionOf(token) + 1);
  }

  callsOf(token: string, id?: OperationId): readonly Call[] {
    return this.upstream.callsTo((to) => tokenOf(to) === token && (id === undefined || idOf(to) === id));
  }

  charges(token: string): number {
    return this.callsOf(token, 'purchasePlan').length;
  }

  /** The next call of an operation stops at the barrier: a read with its answer ready, a write before it is done. */
  holdNext(token: string, id: OperationId): Barrier {
    const at = barrier();
    const isRead = exampleInput(id).method === 'GET';
    const step = isRead ? json(200, marked(id, this.versionOf(token))) : this.#answer();
    this.upstream.once((to) => tokenOf(to) === token && idOf(to) === id, reply(hold(at), step));
    return at;
  }

  /** From now on the upstream does not know this credential. */
  revoke(token: string): void {
    this.upstream.on((to) => tokenOf(to) === token, json(401, { detail: 'Invalid token.' }));
  }

  /** The example request of an operation, through one isolate. */
  ask(url: string, id: OperationId, { key, headers, ...others }: Asking): Promise<TextAnswer> {
    const { method, path, body: example } = exampleInput(id);
    const body = id === 'purchasePlan' ? PURCHASE_BODY : example;
    const keyed = { ...(key !== undefined && { 'idempotency-key': key }), ...headers };
    return call(url, { method, path, ...(body !== undefined && { body }), headers: keyed, ...others });
  }

  /** The answer in a word: status and code, or status and the version that is in it. */
  async gist(url: string, id: OperationId, asking: Asking): Promise<string> {
    const { status, headers, json: value, text } = await this.ask(url, id, asking);
    if (status >= 300) return `${status} ${(value as { readonly code: string }).code}`;
    return `${status} ${String(markOf(text))}${headers['idempotency-replayed'] === 'true' ? ' replayed' : ''}`;
  }

  /** Reads until the answer is a fresh copy of the isolate's. */
  async prime(url: string, id: OperationId, token: string): Promise<void> {
    expect((await this.ask(url, id, { token })).status).toBe(200);
    expect(isHit(await this.ask(url, id, { token }))).toBe(true);
  }

  async restart(vars?: Readonly<Record<string, string>>): Promise<void> {
    this.fleet = await this.fleet.restart(vars && this.#with(vars));
  }

  async close(): Promise<void> {
    await this.fleet.kill();
    await this.upstream.close();
  }

  #with(vars: Readonly<Record<string, string>>) {
    return { UPSTREAM_BASE_URL: this.upstream.url, ...vars };
  }

  #answer(): Step {
    return perCall((to) => {
      const token = tokenOf(to);
      if (to.method !== 'GET') this.change(token);
      const text = marked(idOf(to), this.versionOf(token));
      const good = to.method === 'POST' ? 201 : 200;
      return json(text === '' ? 204 : good, text);
    });
  }
}

export async function startIsolates(count: number, vars: Readonly<Record<string, string>>): Promise<Isolates> {
  const upstream = await startUpstream();
  return new Isolates(upstream, await startBareWorkers({ UPSTREAM_BASE_URL: upstream.url, ...vars }, count));
}

export const isHit = ({ headers }: TextAnswer): boolean =>
  /^portico; hit; ttl=[1-9]/.test(headers['cache-status'] ?? '');

export const cacheOf = ({ headers }: TextAnswer): string | undefined => headers['cache-status'];

/** All that the objects have on disk, the write-ahead logs too, byte for byte. */
export function filesIn(folder: string): readonly { readonly name: string; readonly text: string }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map(({ name, parentPath }) => ({ name, text: readFileSync(join(parentPath, name)).toString('latin1') }));
}
