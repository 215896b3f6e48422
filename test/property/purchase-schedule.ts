import { inProcess } from '../gateway/in-process.ts';
import { type Charge, type EndingName, Till } from './charges.ts';
import { askAt, Expectation, type Seen, seenOf, type Wanted } from './purchase-model.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import { secret } from '../support/secrets.ts';

export interface Asking extends Wanted {
  /** The client is gone before its body has been read. */
  readonly isGone: boolean;
}

export type Command =
  /** In one moment, in this order. */
  | { readonly do: 'ask'; readonly asks: readonly Asking[] }
  | { readonly do: 'end'; readonly nth: number; readonly ending: EndingName; readonly isCharged: boolean }
  | { readonly do: 'leave'; readonly nth: number }
  | { readonly do: 'wait'; readonly seconds: number };

/** Fewer calls than the circuit judges by: it is not what is tested here. */
const MOST_CALLS = 19;

/** Schedules that share a gateway, an hour and all accounts apart; making one takes longer than they do. */
const SHARED_BY = 100;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** All that follows without time passing or a held call ending. */
const settled = () => new Promise<void>((resolve) => void setImmediate(() => setImmediate(resolve)));

const openShop = () => {
  const clock = clockOfDeadlines();
  const till = new Till(() => clock.now());
  return { clock, till, gateway: inProcess({ transport: till.transport, clock }) };
};

type Shop = ReturnType<typeof openShop>;

class Run {
  readonly violations: string[] = [];
  readonly #shop: Shop;
  readonly #tokens = [secret(), secret()];
  readonly #expected = new Expectation();
  readonly #seen = new Map<string, Seen>();
  /** Clients that still wait, by request. */
  readonly #clients = new Map<string, AbortController>();
  readonly #over: Promise<void>[] = [];
  #requests = 0;

  constructor(shop: Shop) {
    this.#shop = shop;
  }

  async play(commands: readonly Command[]): Promise<void> {
    for (const command of commands) {
      await this.#step(command);
      if (this.violations.length > 0) break;
    }
    for (const call of this.#held()) await this.#end(call.requestId, 'good', true);
    await Promise.all(this.#over);
    this.#compare();
    this.violations.push(...chargedTwice(this.#shop.till.charges.filter(({ token }) => this.#tokens.includes(token))));
  }

  async #step(command: Command): Promise<void> {
    const { clock } = this.#shop;
    if (command.do === 'ask') {
      if (this.#expected.sent + command.asks.length > MOST_CALLS) return;
      const asked = command.asks.map((asking) => [this.#ask(asking), asking] as const);
      this.#expected.ask(
        asked.filter(([, { isGone }]) => !isGone),
        clock.now(),
      );
      await settled();
    } else if (command.do === 'end') {
      const { underWay } = this.#expected;
      const call = underWay[command.nth % underWay.length];
      if (call) await this.#end(call.id, command.ending, command.isCharged);
    } else if (command.do === 'leave') {
      [...this.#clients.values()][command.nth % this.#clients.size]?.abort();
      await settled();
    } else {
      clock.advance(command.seconds * 1000);
      this.#expected.passTo(clock.now());
      await settled();
    }
    this.#compareCalls();
  }

  #ask({ isGone, ...wanted }: Asking): string {
    const id = `request-${++this.#requests}`;
    const { path, prints } = askAt(wanted.ask);
    const body = prints[wanted.print % prints.length] ?? '';
    const client = new AbortController();
    const headers = {
      'X-Request-Id': id,
      'Content-Type': 'application/json',
      ...(wanted.key !== undefined && { 'Idempotency-Key': `key-${wanted.key}` }),
    };
    const init = { method: 'POST', headers, body, signal: client.signal };
    const token = this.#tokens[wanted.account] ?? '';
    this.#clients.set(id, client);
    this.#over.push(this.#see(id, client, this.#shop.gateway.ask(path, token, init)));
    if (isGone) client.abort();
    return id;
  }

  async #see(id: string, client: AbortController, answer: Promise<Response>): Promise<void> {
    const response = await answer;
    this.#clients.delete(id);
    // What is said to one who has left is nobody's business.
    if (!client.signal.aborted) this.#seen.set(id, await seenIn(response));
  }

  async #end(id: string, ending: EndingName, isCharged: boolean): Promise<void> {
    const call = this.#held().find(({ requestId }) => requestId === id);
    if (!call) return void this.violations.push(`${id} is not held`);
    const { charges } = this.#shop.till;
    call.end(ending, isCharged);
    const text = charges.at(-1)?.answer?.text ?? '';
    if (this.violations.length === 0) this.#expected.end(id, ending, { text, now: this.#shop.clock.now() });
    await settled();
  }

  #held() {
    return this.#shop.till.held.filter(({ token }) => this.#tokens.includes(token));
  }

  #compareCalls(): void {
    const held = listed(this.#held().map(({ requestId }) => requestId));
    const expected = listed(this.#expected.underWay.map(({ id }) => id));
    if (held !== expected) this.violations.push(`under way: ${held}; should be: ${expected}`);
  }

  #compare(): void {
    if (this.violations.length > 0) return;
    for (const [id, seen] of this.#seen) {
      const expected = this.#expected.answers.get(id);
      if (seen !== expected) this.violations.push(`${id} got ${seen}, should get ${expected}`);
    }
  }
}

const listed = (ids: readonly string[]) => ids.toSorted().join(', ');

/** Never more than one charge for a key of an account in a day, whatever was answered. */
function chargedTwice(charges: readonly Charge[]): string[] {
  return charges.flatMap(({ token, key, at }, index) => {
    const isSame = (other: Charge) => other.token === token && other.key === key && Math.abs(other.at - at) < DAY_MS;
    const isTwice = key !== undefined && charges.slice(0, index).some(isSame);
    return isTwice ? [`charged twice for ${key}`] : [];
  });
}

async function seenIn(response: Response): Promise<Seen> {
  const replayed = response.headers.get('Idempotency-Replayed') === 'true' ? ' replayed' : '';
  const text = await response.text();
  if (response.status < 300) return seenOf(response.status, text) + replayed;
  const { code, outcome } = JSON.parse(text) as { code: string; outcome?: string };
  return `${response.status} ${code}${outcome === undefined ? '' : ` ${outcome}`}${replayed}`;
}

let shop: Shop | undefined;
let played = 0;

/** Plays a schedule to its end; comes back with every broken promise. */
export async function playPurchases(commands: readonly Command[]): Promise<readonly string[]> {
  if (played++ % SHARED_BY === 0) {
    await shop?.gateway.close();
    shop = undefined;
  }
  shop ??= openShop();
  const run = new Run(shop);
  await run.play(commands);
  shop.clock.advance(HOUR_MS);
  return run.violations;
}
