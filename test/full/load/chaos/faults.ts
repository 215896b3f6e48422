import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosGateway } from './gateways.ts';
import { type ChaosNode, until } from './node.ts';
import type { ChaosStore } from './stores.ts';

/** What a fault may have made the store forget: all of before a moment, or what was new when a replica took over. */
export interface Loss {
  readonly is: 'flush' | 'failover';
  readonly from: number;
  readonly to: number;
}

export interface Happened {
  readonly name: string;
  readonly at: number;
  /** Infinity while it goes on. */
  endedAt: number;
}

type Fault = readonly [name: string, act: () => Promise<void>];

const between = (least: number, most: number) => least + Math.random() * (most - least);
const oneOf = <T>(all: readonly T[]): T | undefined => all[Math.floor(Math.random() * all.length)];

/** The fault after which nobody says how a write ended. */
export const KILLED = 'a gateway is killed';
export const PAUSED = 'a gateway is paused';

const SHORT_MS = 1_500;
const LONG_MS = 3_000;
/** Until a replica has taken over, if it does. */
const ELECTION_MS = 4_000;

/**
 * Does one thing after another to the instances, and at the same time to the store. A replica takes over where its primary is
 * away for long enough, not by hand (`SENTINEL FAILOVER`): that waits for no `down-after-milliseconds`.
 */
export class Faults {
  readonly happened: Happened[] = [];
  readonly losses: Loss[] = [];
  readonly #gateways: readonly ChaosGateway[];
  readonly #store: ChaosStore;
  #isOver = false;

  constructor(gateways: readonly ChaosGateway[], store: ChaosStore) {
    this.#gateways = gateways;
    this.#store = store;
  }

  async run(): Promise<void> {
    const ofGateways: readonly Fault[] = [
      [KILLED, async () => oneOf(this.#gateways)?.killFor(between(0, LONG_MS))],
      [PAUSED, async () => oneOf(this.#gateways)?.pauseFor(LONG_MS)],
    ];
    const ofStore = this.#store.nodes.length > 0 ? this.#ofStore() : [];
    // Some of the store's in the window of the one before, some not.
    await Promise.all([this.#inTurn(ofGateways, 8_000), this.#inTurn(ofStore, 14_000)]);
  }

  end(): void {
    this.#isOver = true;
  }

  async #inTurn(faults: readonly Fault[], mostMs: number): Promise<void> {
    while (!this.#isOver && faults.length > 0)
      for (const [name, act] of faults.toSorted(() => Math.random() - 0.5)) {
        await sleep(between(2_000, mostMs));
        if (this.#isOver) return;
        const one: Happened = { name, at: performance.now(), endedAt: Infinity };
        this.happened.push(one);
        await act();
        one.endedAt = performance.now();
      }
  }

  #ofStore(): readonly Fault[] {
    const elsewhere = this.#store.elsewhere ?? (() => sleep(0));
    return [
      ['Redis is killed', () => this.#away((node) => node.kill(), (node) => node.start())], // prettier-ignore
      ['Redis is paused', () => this.#away((node) => node.signal('SIGSTOP'), (node) => node.signal('SIGCONT'))], // prettier-ignore
      ['Redis is cut off', () => this.#away(({ relay }) => relay.cut(), ({ relay }) => relay.mend())], // prettier-ignore
      ['all is slow', () => this.#slow()],
      ['all is flushed', () => this.#flushed()],
      ['memory is full', () => this.#full()],
      ['the address leads elsewhere', () => elsewhere(SHORT_MS)],
    ];
  }

  /** For a moment, or so long that a replica takes over; comes out when all replicas follow again. */
  async #away(leave: Act, comeBack: Act): Promise<void> {
    const before = await this.#store.primaries();
    const node = oneOf(before);
    if (!node) return;
    const from = performance.now();
    await leave(node);
    await sleep(Math.random() < 0.5 ? between(0, SHORT_MS) : this.#store.longestMs);
    await comeBack(node);
    if (this.#store.nodes.length === 1) return;
    await sleep(ELECTION_MS);
    await until(() => this.#isWhole()).catch(() => undefined);
    const after = await this.#store.primaries();
    if (after.some((one) => !before.includes(one))) this.losses.push({ is: 'failover', from, to: performance.now() });
  }

  async #isWhole(): Promise<boolean> {
    const all = await Promise.all(this.#store.nodes.map(({ client }) => client.info('replication')));
    const replicas = all.filter((info) => info.includes('role:slave'));
    return all.length - replicas.length === 1 && replicas.every((info) => info.includes('master_link_status:up'));
  }

  async #slow(): Promise<void> {
    const ms = between(20, 350);
    for (const { relay } of this.#store.nodes) relay.distance = { ms, jitterMs: ms / 2 };
    await sleep(LONG_MS);
    for (const { relay } of this.#store.nodes) relay.distance = { ms: 0 };
  }

  async #flushed(): Promise<void> {
    const from = performance.now();
    for (const { client } of await this.#store.primaries()) await client.flushall().catch(() => undefined);
    this.losses.push({ is: 'flush', from, to: performance.now() });
  }

  async #full(): Promise<void> {
    const primaries = await this.#store.primaries();
    const share = between(0.8, 1.3); // of what is held: beyond three quarters of its memory it takes no new copies
    for (const { client } of primaries) {
      const used = Number(/^used_memory:(\d+)/m.exec(await client.info('memory'))?.[1]);
      await client.config('SET', 'maxmemory', Math.round(used * share));
    }
    await sleep(LONG_MS);
    for (const { client } of primaries) await client.config('SET', 'maxmemory', '0');
  }
}

type Act = (node: ChaosNode) => void | Promise<void>;
