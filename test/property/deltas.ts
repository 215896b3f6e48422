import { setTimeout as sleep } from 'node:timers/promises';
import { type OperationId, allOverviews, matchPath, operations } from '../support/account-api.ts';
import { exampleBody, exampleRequest } from '../support/examples.ts';
import type { InProcess } from '../gateway/in-process.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import type { Transport } from '../../src/upstream/transport.ts';
import { type Counts, DeltaClient, noCounts } from './deltas-client.ts';
import { oneOf, type Random, randomOf } from './random.ts';

/**
 * Random reads, waits and writes of one account through two instances over one store. A client takes what is sent into what
 * it has: it then has what a fresh read gives, and nothing from before a write that somebody was told of.
 */

/** Copies are soon old, so that waits see newer ones; but those of one overview are renewed by writes only. */
export const DELTAS_ENV = {
  CACHE_POLICY: JSON.stringify(
    Object.fromEntries(
      Object.values(operations as Readonly<Record<string, Operation>>)
        .filter(({ cache }) => cache)
        .map(({ id }) => [id, { fresh: /referral|earn/i.test(id) ? 60 : 1, stale: 2, on_error: 60 }]),
    ),
  ),
};

const WRITES = [
  'purchasePlan',
  'updateReferralConfig',
  'deletePaymentMethod',
] as const satisfies readonly OperationId[];
/** How long a schedule changes things, and in how many steps at most. */
const LENGTH_MS = 2_000;
const MOST = { writes: 3, changes: 3, failures: 2 };
const CLIENTS = 3;
const SECONDS = 2;

/** What is read and written together has one version. */
const groupOf = ({ id, group }: Pick<Operation, 'id' | 'group'>) => group ?? id;

const SECTIONS = new Map<string, string>(
  allOverviews.flatMap(({ sections }) =>
    Object.entries(sections).map(([name, { read }]) => [name, groupOf(read)] as const),
  ),
);
const GROUPS = [...new Set(SECTIONS.values())];

const groupsOf = ({ invalidates = [] }: Operation): readonly string[] =>
  invalidates.flatMap((group) =>
    group === 'everything' ? GROUPS : typeof group === 'string' ? [group] : [group.item],
  );

/** What an account is at the upstream. */
class Account {
  readonly random: Random;
  /** Of each group. */
  readonly versions = new Map<string, number>();
  /** Those that a write made, and of these those that somebody was told of. */
  readonly written = new Map<string, number>();
  told: ReadonlyMap<string, number> = new Map();
  failing: string | undefined;
  #version = 1;

  constructor(random: Random) {
    this.random = random;
  }

  change(groups: readonly string[], of: readonly Map<string, number>[] = [this.versions]): void {
    this.#version++;
    for (const group of groups) for (const versions of of) versions.set(group, this.#version);
  }
}

/** The example answer. It, and each object in it, says its version. */
const markedBody = (id: OperationId, version: number): string =>
  operations[id].answer === null ? '' : exampleBody(id).replaceAll('{"', `{"x_mark":${version},"`);

const markIn = (data: unknown): number | undefined => {
  const mark = /"x_mark":(\d+)/.exec(JSON.stringify(data))?.[1];
  return mark === undefined ? undefined : Number(mark);
};

/** The upstream of all schedules that are under way. */
export class DeltaUpstream {
  readonly accounts = new Map<string, Account>();

  readonly transport: Transport = async ({ method, path, headers }) => {
    const account = this.accounts.get(headers[headers.indexOf('authorization') + 1]?.slice('Token '.length) ?? '');
    const operation = matchPath(path.split('?')[0] ?? '')?.methods.get(method as Operation['method']);
    if (!account || !operation) throw new Error(`nobody expected ${method} ${path}`);
    const isRead = method === 'GET';
    await sleep(account.random() * 4);
    if (!isRead) account.change(groupsOf(operation), [account.versions, account.written]);
    const group = groupOf(operation);
    const fails = isRead && account.failing === group;
    const text = fails ? '{}' : markedBody(operation.id as OperationId, account.versions.get(group) ?? 1);
    await sleep(account.random() * 4);
    const status = fails ? 500 : text === '' ? 204 : 200;
    return { status, headers: { 'content-type': 'application/json' }, body: { text } };
  };
}

export interface DeltasPlayed {
  readonly violations: readonly string[];
  readonly counts: Counts;
}

/** One account, its clients, and what goes on at its upstream. */
class Schedule {
  readonly counts = noCounts();
  readonly violations: string[] = [];
  readonly #random: Random;
  readonly #token: string;
  readonly #account: Account;
  readonly #instances: readonly InProcess[];
  #isOver = false;

  constructor(seed: number, instances: readonly InProcess[], upstream: DeltaUpstream) {
    this.#random = randomOf(seed);
    this.#token = `token-of-schedule-${seed}`;
    this.#account = new Account(this.#random);
    this.#instances = instances;
    upstream.accounts.set(this.#token, this.#account);
  }

  async play(): Promise<void> {
    const clients = Promise.all(Array.from({ length: CLIENTS }, () => this.#read()));
    await Promise.all([
      sleep(LENGTH_MS),
      this.#now(MOST.writes, () => this.#write()),
      this.#now(MOST.changes, async () => this.#account.change([oneOf(this.#random, GROUPS)])),
      this.#now(MOST.failures, () => this.#fail()),
    ]);
    this.#isOver = true;
    for (const { path, client } of await clients) await this.#compare(path, client);
  }

  /** At random times, one after the other. */
  async #now(most: number, run: () => Promise<unknown>) {
    for (let left = Math.floor(this.#random() * (most + 1)); left > 0; left--) {
      await sleep((this.#random() * LENGTH_MS) / most);
      await run();
    }
  }

  async #read() {
    const random = this.#random;
    const { path } = oneOf(random, allOverviews);
    const client = new DeltaClient(path, this.#token, this.counts);
    while (!this.#isOver) {
      const waits = client.etag !== undefined && random() < 0.5;
      const changes = random() < 0.7 ? ['changed-sections'] : [];
      const prefer = [...changes, ...(waits ? [`wait=${SECONDS}`] : [])].join(', ');
      if (waits) this.counts.waits++;
      const { told } = this.#account;
      const status = await client.ask(oneOf(random, this.#instances), prefer, !waits && random() < 0.3);
      if (status < 400) this.#check(client, told, `${prefer} ${status}`);
      await sleep(random() * 200);
    }
    return { path, client };
  }

  /** Nothing is from before what was told when the request began. */
  #check({ data }: DeltaClient, told: ReadonlyMap<string, number>, how: string) {
    for (const [name, value] of Object.entries(data)) {
      const [mark, least] = [markIn(value), told.get(SECTIONS.get(name) ?? '') ?? 0];
      if (mark !== undefined && mark < least) this.violations.push(`${name} is ${mark}, ${least} was told: ${how}`);
    }
  }

  async #write() {
    const { method, path, body } = exampleRequest(oneOf(this.#random, WRITES));
    const headers = { 'Content-Type': 'application/json' };
    const init = { method, headers, ...(body !== undefined && { body }) };
    const { ok } = await oneOf(this.#random, this.#instances).ask(path, this.#token, init, this.#token);
    if (!ok) return;
    this.counts.writes++;
    this.#account.told = new Map(this.#account.written);
  }

  async #fail() {
    this.#account.failing = oneOf(this.#random, GROUPS);
    await sleep((this.#random() * LENGTH_MS) / 3);
    this.#account.failing = undefined;
  }

  /**
   * Whether it has what a fresh read gives. A copy that has just become old may be given in between, and the one after it: what
   * was taken in wrongly stays.
   */
  async #compare(path: string, client: DeltaClient) {
    let found = '';
    for (let tries = 5; tries > 0; tries--) {
      const at = oneOf(this.#random, this.#instances);
      const fresh = new DeltaClient(path, this.#token);
      const status = await client.ask(at, 'changed-sections', this.#random() < 0.3);
      await fresh.ask(at);
      const [has, is] = [client, fresh].map(({ all }) => JSON.stringify(all));
      if (has === is && fresh.etag !== undefined) return;
      found = `${path} (${status}): has ${has} and not ${is}`;
      await sleep(this.#random() * 100);
    }
    this.violations.push(found);
  }
}

/** Plays the schedule of that seed through instances over one store. */
export async function playDeltas(
  seed: number,
  instances: readonly InProcess[],
  upstream: DeltaUpstream,
): Promise<DeltasPlayed> {
  const schedule = new Schedule(seed, instances, upstream);
  await schedule.play();
  return schedule;
}
