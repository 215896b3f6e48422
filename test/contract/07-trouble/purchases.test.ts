import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RawAnswer } from '../../../src/upstream/transport.ts';
import { says } from '../../support/contract.ts';
import { type Gateway, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { seed, times } from '../../support/times.ts';
import { answer, pairsOf, transportBy } from '../../support/upstream.ts';
import { DAY, summaryOf } from './helpers.ts';
import { ASKS, type Ending, ENDINGS, Expectation, receiptOf, type Seen, type Wanted } from './purchase-model.ts';

interface Charge {
  readonly token: string;
  readonly key: string | undefined;
  readonly at: number;
}

interface HeldCall extends Charge {
  readonly id: string;
  end(ending: Ending, isChargedIfUnknown: boolean): void;
}

/** An upstream that takes money: every call is held until it is ended, and what was paid is written down. */
class Till {
  readonly held: HeldCall[] = [];
  readonly charges: Charge[] = [];
  /** In seconds. */
  now = () => 0;

  readonly transport = transportBy(({ headers: pairs, signal }) => {
    const headers = pairsOf(pairs);
    const token = (headers['authorization'] ?? '').replace('Token ', '');
    const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>();
    const over = () => void this.held.splice(this.held.indexOf(call), 1);
    const abandon = () => {
      over();
      this.charges.push(call); // the worst: it took the money, and was about to say so
      reject(signal.reason);
    };
    const end: HeldCall['end'] = ({ reply, proves }, isChargedIfUnknown) => {
      over();
      signal.removeEventListener('abort', abandon);
      if (proves === 'done' || (proves === 'nothing' && isChargedIfUnknown)) this.charges.push(call);
      if (reply instanceof Error || reply === 'hang') reject(reply);
      else resolve(proves === 'done' ? answer(reply.status, receiptOf(reply.status, call.id)) : reply);
    };
    const call = { token, key: headers['idempotency-key'], at: this.now(), id: headers['x-request-id'] ?? '', end };
    this.held.push(call);
    signal.addEventListener('abort', abandon);
    return promise;
  });
}

type Command =
  /** In one moment, in this order. */
  | { readonly do: 'ask'; readonly asks: readonly Wanted[] }
  | { readonly do: 'end'; readonly nth: number; readonly ending: number; readonly isCharged: boolean }
  | { readonly do: 'leave'; readonly nth: number }
  | { readonly do: 'wait'; readonly seconds: number };

/** Fewer calls than the circuit judges by: it is not what is tested here. */
const MOST_CALLS = 19;

let requests = 0;

const idsOf = (calls: readonly { readonly id: string }[]) => calls.map(({ id }) => id).toSorted();

class Run {
  readonly #gateway: Gateway;
  readonly #till: Till;
  readonly #tokens = [secret(), secret()];
  readonly #expected = new Expectation();
  readonly #seen = new Map<string, Seen>();
  /** Clients that still wait, by request. */
  readonly #clients = new Map<string, AbortController>();
  readonly #over: Promise<void>[] = [];

  constructor(gateway: Gateway, till: Till) {
    [this.#gateway, this.#till] = [gateway, till];
  }

  async play(commands: readonly Command[]): Promise<void> {
    for (const command of commands) {
      await this.#step(command);
      expect(idsOf(this.#held())).toEqual(idsOf(this.#expected.underWay));
    }
    for (const { id } of this.#held()) await this.#end(id, ENDINGS[0]!, true);
    await Promise.all(this.#over);
    for (const [id, seen] of this.#seen) expect([id, seen]).toEqual([id, this.#expected.answers.get(id)]);
    const paid = this.#till.charges.filter(({ token, key }) => key !== undefined && this.#tokens.includes(token));
    for (const [at, one] of paid.entries())
      for (const other of paid.slice(0, at))
        if (one.token === other.token && one.key === other.key) expect(one.at - other.at).toBeGreaterThanOrEqual(DAY);
  }

  async #step(command: Command): Promise<void> {
    if (command.do === 'ask') {
      if (this.#expected.sent + command.asks.length > MOST_CALLS) return;
      for (const wanted of command.asks) this.#ask(wanted);
    } else if (command.do === 'end') {
      const { underWay } = this.#expected;
      const call = underWay[command.nth % underWay.length];
      if (call) await this.#end(call.id, ENDINGS[command.ending]!, command.isCharged);
    } else if (command.do === 'leave') {
      [...this.#clients.values()][command.nth % this.#clients.size]?.abort();
    } else {
      this.#gateway.clock.advance(command.seconds * 1000);
      this.#expected.passTo(this.#till.now());
    }
    await this.#gateway.pass(0);
  }

  #ask(wanted: Wanted): void {
    const id = `purchase-${++requests}`;
    const { path, prints } = ASKS[wanted.ask]!;
    const client = new AbortController();
    const key = wanted.key === undefined ? {} : { key: `key-${wanted.key}` };
    const body = prints[wanted.print % prints.length];
    const asking = { token: this.#tokens[wanted.account]!, body, headers: { 'x-request-id': id }, ...key };
    this.#expected.ask(id, wanted, this.#till.now());
    this.#clients.set(id, client);
    this.#over.push(
      this.#gateway.call(path, { ...asking, signal: client.signal }).then((answered) => {
        this.#clients.delete(id);
        // What is said to one who has left is nobody's business.
        if (!client.signal.aborted) this.#seen.set(id, summaryOf(answered));
      }),
    );
  }

  async #end(id: string, ending: Ending, isCharged: boolean): Promise<void> {
    this.#held()
      .find((one) => one.id === id)!
      .end(ending, isCharged);
    this.#expected.end(id, ending, this.#till.now());
    await this.#gateway.pass(0);
  }

  #held(): readonly HeldCall[] {
    return this.#till.held.filter(({ token }) => this.#tokens.includes(token));
  }
}

/** Mostly the same one, since it is then that something can go wrong. */
const ask = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.nat({ max: ASKS.length - 1 }) },
);
const asking = fc.record({
  account: fc.constantFrom(0, 0, 0, 1),
  key: fc.constantFrom(0, 0, 0, 0, 1, undefined, undefined),
  ask,
  print: fc.nat({ max: 2 }),
});
const asks = fc.oneof(
  { weight: 10, arbitrary: asking.map((one) => [one]) },
  { weight: 3, arbitrary: fc.array(asking, { minLength: 2, maxLength: 3 }) },
);
const ending = fc.oneof(
  { weight: 1, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.nat({ max: ENDINGS.length - 1 }) },
);
const nth = fc.nat({ max: 5 });
/** Less than a call may take, more, a hold, a minute, the day within which a key is kept and the moment it is over. */
const seconds = fc.constantFrom(1, 3, 3, 4, 5, 7, 60, 3600, 86_394, 86_399, 86_400);

const command = fc.oneof<fc.WeightedArbitrary<Command>[]>(
  { weight: 13, arbitrary: asks.map((all) => ({ do: 'ask', asks: all })) },
  { weight: 9, arbitrary: fc.record({ do: fc.constant('end'), nth, ending, isCharged: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('leave'), nth }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait'), seconds }) },
);

test(`${says('it is never sent again')}: nobody is charged twice for a key, and each gets the answer that the contract has for it`, async () => {
  const till = new Till();
  const gateway = openGateway({}, { transport: till.transport });
  till.now = () => gateway.clock.now() / 1000;
  const plays = fc.asyncProperty(fc.array(command, { minLength: 2, maxLength: 12, size: 'max' }), async (commands) => {
    await new Run(gateway, till).play(commands);
    gateway.clock.advance(3_600_000); // what others did is forgotten, but for their records
  });
  await fc.assert(plays, { numRuns: times(1_000), seed: seed() });
});
