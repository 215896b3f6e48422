import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { call, type TextAnswer } from '../support/http.ts';
import { markOf } from '../support/marked.ts';
import { json, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { isOf, requestOf, VersionedUpstream } from '../support/versioned-upstream.ts';
import type { Asking } from '../support/world.ts';
import { secret } from '../support/secrets.ts';
import { startBareWorkers, type WorkerFleet } from './bare-worker.ts';
import { objectsAwake } from './worker-gateway.ts';

/** Isolates of one workerd before one upstream. */
export class Isolates extends VersionedUpstream {
  fleet: WorkerFleet;

  constructor(upstream: ScriptedUpstream, fleet: WorkerFleet) {
    super(upstream);
    this.fleet = fleet;
  }

  get urls(): readonly string[] {
    return this.fleet.urls;
  }

  /** From now on the upstream does not know this credential. */
  revoke(token: string): void {
    this.upstream.on((to) => isOf(token, to), json(401, { detail: 'Invalid token.' }));
  }

  /** The example request of an operation, through one isolate. */
  ask(url: string, id: OperationId, { key, headers, ...others }: Asking): Promise<TextAnswer> {
    const keyed = { ...(key !== undefined && { 'idempotency-key': key }), ...headers };
    return call(url, { ...requestOf(id), headers: keyed, ...others });
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

  async awake(): Promise<void> {
    const token = secret();
    await Promise.all(this.urls.map((url) => objectsAwake(url, token)));
  }

  async restart(vars?: Readonly<Record<string, string>>): Promise<void> {
    this.fleet = await this.fleet.restart(vars && this.#with(vars));
    await this.awake();
  }

  async close(): Promise<void> {
    await this.fleet.kill();
    await this.upstream.close();
  }

  #with(vars: Readonly<Record<string, string>>) {
    return { UPSTREAM_BASE_URL: this.upstream.url, ...vars };
  }
}

export async function startIsolates(count: number, vars: Readonly<Record<string, string>>): Promise<Isolates> {
  const upstream = await startUpstream();
  const fleet = await startBareWorkers({ UPSTREAM_BASE_URL: upstream.url, ...vars }, count);
  const isolates = new Isolates(upstream, fleet);
  await isolates.awake();
  return isolates;
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
