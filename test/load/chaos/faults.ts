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
  readonly #isReplicated: boolean;
  #isOver = false;

  constructor(gateways: readonly ChaosGateway[], store: ChaosStore) {
    this.#gateways = gateways;
    this.#store = store;
    this.#isReplicated = store.nodes.length > 1;
  }

  async run(): Promise<void> {
    await Promise.all([
      this.#inTurn(this.#ofGateways(), 2_000, 8_000),
      this.#inTurn(this.#ofStore(), 2_000, 14_000), // some in the window of the one before, some not
    ]);
  }

  end(): void {
    this.#isOver = true;
  }

  async #inTurn(faults: readonly Fault[], leastMs: number, mostMs: number): Promise<void> {
    while (!this.#isOver && faults.length > 0)
      for (const [name, act] of faults.toSorted(() => Math.random() - 0.5)) {
        await sleep(between(leastMs, mostMs));
        if (this.#isOver) return;
        const one: Happened = { name, at: performance.now(), endedAt: Infinity };
        this.happened.push(one);
        await act();
        one.endedAt = performance.now();
      }
  }

  #ofGateways(): readonly Fault[] {
    const one = () => this.#gateways[Math.floor(Math.random() * this.#gateways.length)];
    return [
      [KILLED, async () => one()?.killFor(between(0, LONG_MS))],
      [PAUSED, async () => one()?.pauseFor(LONG_MS)],
    ];
  }

  #ofStore(): readonly Fault[] {
    const { nodes, elsewhere } = this.#store;
    if (nodes.length === 0) return [];
    const faults: Fault[] = [
      ['Redis is killed', () => this.#toPrimary((node) => this.#killed(node))],
      ['Redis is paused', () => this.#toPrimary((node) => this.#paused(node))],
      ['Redis is cut off', () => this.#toPrimary((node) => this.#cutOff(node))],
      ['all is slow', () => this.#slow(nodes)],
      ['connections are killed', () => this.#killConnections()],
      ['all is flushed', () => this.#flushed()],
      ['memory is full', () => this.#full()],
    ];
    if (elsewhere) faults.push(['the address leads elsewhere', () => this.#elsewhere(elsewhere)]);
    return faults;
  }

  async #toPrimary(act: (node: ChaosNode) => Promise<void>): Promise<void> {
    const primaries = await this.#store.primaries();
    const node = primaries[Math.floor(Math.random() * primaries.length)];
    if (node) await this.#mayLose(() => act(node));
  }

  /** A replica may take over; comes out when all of them follow again. */
  async #mayLose(act: () => Promise<void>): Promise<void> {
    if (!this.#isReplicated) return act();
    const before = await this.#store.primaries();
    const from = performance.now();
    await act();
    await sleep(ELECTION_MS);
    await until(() => this.#isWhole()).catch(() => undefined);
    const after = await this.#store.primaries();
    if (after.some((node) => !before.includes(node))) this.losses.push({ is: 'failover', from, to: performance.now() });
  }

  async #isWhole(): Promise<boolean> {
    const all = await Promise.all(this.#store.nodes.map(({ client }) => client.info('replication')));
    const replicas = all.filter((info) => info.includes('role:slave'));
    return all.length - replicas.length === 1 && replicas.every((info) => info.includes('master_link_status:up'));
  }

  /** For a moment, or so long that a replica takes over. */
  #awayMs(): number {
    return Math.random() < 0.5 ? between(0, SHORT_MS) : this.#store.longestMs;
  }

  async #killed(node: ChaosNode): Promise<void> {
    await node.kill();
    await sleep(this.#awayMs());
    await node.start();
  }

  async #paused(node: ChaosNode): Promise<void> {
    node.signal('SIGSTOP');
    await sleep(this.#awayMs());
    node.signal('SIGCONT');
  }

  async #cutOff({ relay }: ChaosNode): Promise<void> {
    relay.cut();
    await sleep(this.#awayMs());
    relay.mend();
  }

  async #slow(nodes: readonly ChaosNode[]): Promise<void> {
    const ms = between(20, 350);
    for (const { relay } of nodes) relay.distance = { ms, jitterMs: ms / 2 };
    await sleep(LONG_MS);
    for (const { relay } of nodes) relay.distance = { ms: 0 };
  }

  async #killConnections(): Promise<void> {
    for (const { client } of await this.#store.primaries())
      await client.call('CLIENT', 'KILL', 'TYPE', 'normal').catch(() => undefined);
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

  async #elsewhere(lead: () => Promise<() => Promise<void>>): Promise<void> {
    const back = await lead();
    await sleep(SHORT_MS);
    await back();
  }
}
