import { endingOf, type EndingName, HOLD_SECONDS } from './charges.ts';
import { exampleRequest } from '../support/examples.ts';
import { accountIds, rowOf } from '../support/table.ts';

/** What a client asks for; `prints` are texts of one body, which mean the same. */
export interface Ask {
  readonly path: string;
  readonly prints: readonly string[];
  /** Two equal ones at the same moment are refused also without a key. */
  readonly isExclusive: boolean;
}

const PURCHASE = '/api/v2/subscription/checkout/purchase/';

const purchase = (...prints: readonly string[]): Ask => ({ path: PURCHASE, prints, isExclusive: true });

const NAMED: readonly Ask[] = [
  purchase(
    '{"term":"monthly","proxy_countries":{"US":5,"FR":1}}',
    ' { "proxy_countries" : {"FR":1,\n"US":5}, "term":"monthly"}\n',
    String.raw`{"\u0074erm":"month\u006cy","proxy_countries":{"\u0055S":5,"FR":1}}`,
  ),
  purchase('{"term":"yearly","proxy_countries":{"US":5,"FR":1}}'),
  purchase('{"x_price":25}', '{"x_price" :25 }'),
  purchase('{"x_price":25.0}'),
  // Another operation with the body of the one before.
  purchase('{"label":"é"}'),
  { path: '/api/v2/apikey/', prints: ['{"label":"é"}', String.raw`{"label":"\u00e9"}`], isExclusive: false },
  // These take no body: one that comes all the same is no part of what is asked.
  { path: '/api/v2/subuser/5/refresh/', prints: ['{}', '{ }'], isExclusive: false },
  { path: '/api/v2/subuser/6/refresh/', prints: ['{}'], isExclusive: false },
  { path: '/api/v2/proxy/list/refresh/?plan_id=3', prints: ['{}'], isExclusive: false },
  { path: '/api/v2/proxy/list/refresh/?plan_id=4', prints: ['{}'], isExclusive: false },
];

/** And the example of every POST of an account. */
export const ASKS: readonly Ask[] = [
  ...NAMED,
  ...accountIds.map((id) => {
    const { path, body = '{}' } = exampleRequest(id);
    return { path, prints: [body], isExclusive: rowOf(id).exclusive === true };
  }),
];

export const askAt = (index: number): Ask => ASKS[index] ?? purchase('{}');

export interface Wanted {
  readonly account: number;
  /** Of a few; or none. */
  readonly key: number | undefined;
  /** Index into `ASKS`, and of the print of it. */
  readonly ask: number;
  readonly print: number;
}

/** An answer in a form that is easy to compare: `200 {…} replayed`, `409 outcome_unknown unknown`, `502 … unknown`. */
export type Seen = string;

interface Record {
  readonly ask: number;
  readonly expiresAt: number;
  /** Under way, not known, or answered with this. */
  readonly state: 'under_way' | 'unknown' | { readonly seen: Seen };
}

interface Sent extends Wanted {
  readonly id: string;
  readonly sentAt: number;
}

/** Until then an equal one may not follow, should its outcome not be known. */
interface Purchase extends Wanted {
  readonly until: number;
  readonly isUnknown: boolean;
}

const DAY_MS = 86_400_000;
const REQUEST_MS = 10_000;
const LATE_MS = 60_000;
const TIMEOUT_MS = 5000;

/** What contract.md section 7 says of writes, and nothing of how it is done. */
export class Expectation {
  /** Oldest first. */
  readonly underWay: Sent[] = [];
  readonly answers = new Map<string, Seen>();
  readonly #records = new Map<string, Record>();
  /** Purchases under way or of unknown outcome, by request. */
  readonly #purchases = new Map<string, Purchase>();
  readonly #heldUntil = new Map<number, number>();
  /** Calls that the upstream has had. */
  sent = 0;

  /** Requests of one moment, in their order. Who is held back has a known answer only with a key. */
  ask(all: readonly (readonly [id: string, wanted: Wanted])[], now: number): void {
    for (const [id, wanted] of all) {
      const isHeld = this.#isHeld(wanted.account, now);
      if (wanted.key === undefined && isHeld) this.answers.set(id, '429 rate_limited');
      else if (!this.#isKnown(id, wanted, now)) this.#begin(id, wanted, now, isHeld);
    }
  }

  /** Whether something is known that answers it. */
  #isKnown(id: string, wanted: Wanted, now: number): boolean {
    const slot = slotOf(wanted);
    const known = slot === undefined ? undefined : this.#records.get(slot);
    if (known && (known.state === 'under_way' || known.expiresAt > now)) {
      this.answers.set(id, known.ask === wanted.ask ? again(known.state) : '422 idempotency_key_reused');
      return true;
    }
    const equal = this.#equalTo(wanted, now);
    if (equal) this.answers.set(id, again(equal));
    return equal !== undefined;
  }

  /** Nothing is noted of what is held back: the upstream wants no calls of the account just now. */
  #begin(id: string, wanted: Wanted, now: number, isHeld: boolean): void {
    if (isHeld) return void this.answers.set(id, '429 rate_limited');
    const slot = slotOf(wanted);
    if (slot !== undefined) this.#records.set(slot, { ask: wanted.ask, expiresAt: now + DAY_MS, state: 'under_way' });
    if (askAt(wanted.ask).isExclusive)
      this.#purchases.set(id, { ...wanted, until: now + REQUEST_MS + LATE_MS, isUnknown: false });
    this.underWay.push({ ...wanted, id, sentAt: now });
    this.sent += 1;
  }

  /** One with a key meets those without, one without a key all. */
  #equalTo({ account, ask, key }: Wanted, now: number): 'under_way' | 'unknown' | undefined {
    if (!askAt(ask).isExclusive) return undefined;
    const equal = [...this.#purchases.values()].filter(
      (other) =>
        other.account === account &&
        other.ask === ask &&
        other.until > now &&
        (key === undefined || other.key === undefined),
    );
    if (equal.length === 0) return undefined;
    return equal.every(({ isUnknown }) => isUnknown) ? 'unknown' : 'under_way';
  }

  #isHeld(account: number, now: number): boolean {
    return (this.#heldUntil.get(account) ?? 0) > now;
  }

  /** `text` is that of a definite answer. */
  end(id: string, name: EndingName, { text, now }: { text: string; now: number }): void {
    const { status, code, proves } = endingOf(name);
    const suffix = proves === 'nothing' ? ' unknown' : '';
    const call = this.#over(id, code === undefined ? seenOf(status, text) : `${status} ${code}${suffix}`);
    if (name === 'limited') this.#heldUntil.set(call.account, now + HOLD_SECONDS * 1000);
    if (proves === 'done') this.#settle(call, { seen: seenOf(status, text) });
    else if (proves === 'nothing') this.#settle(call, 'unknown');
    else this.#free(id, call);
  }

  /** What has been under way for too long is given up. */
  passTo(now: number): void {
    for (const call of this.underWay.filter(({ sentAt }) => sentAt + TIMEOUT_MS <= now)) {
      this.#over(call.id, '504 upstream_timeout unknown');
      // A wait of hours is a stall: it is known only at its end that the outcome is not.
      const known = this.#purchases.get(call.id);
      if (known && known.until <= now) this.#purchases.set(call.id, { ...known, until: now + LATE_MS });
      this.#settle(call, 'unknown', now + 1); // it is told of once, however late
    }
  }

  #over(id: string, seen: Seen): Sent {
    const index = this.underWay.findIndex((call) => call.id === id);
    const [call] = this.underWay.splice(index, 1);
    if (!call) throw new Error(`${id} is not under way`);
    this.answers.set(id, seen);
    return call;
  }

  #settle(call: Sent, state: Record['state'], least = 0): void {
    const known = this.#purchases.get(call.id);
    if (known && state === 'unknown') this.#purchases.set(call.id, { ...known, isUnknown: true });
    else this.#purchases.delete(call.id);
    const slot = slotOf(call);
    const expiresAt = Math.max(call.sentAt + DAY_MS, least);
    if (slot !== undefined) this.#records.set(slot, { ask: call.ask, expiresAt, state });
  }

  #free(id: string, call: Wanted): void {
    this.#purchases.delete(id);
    const slot = slotOf(call);
    if (slot !== undefined) this.#records.delete(slot);
  }
}

/** Where the record of a key stands. */
const slotOf = ({ account, key }: Wanted) => (key === undefined ? undefined : `${account} ${key}`);

function again(state: Record['state']): Seen {
  if (state === 'under_way') return '409 idempotency_in_progress';
  return state === 'unknown' ? '409 outcome_unknown unknown' : `${state.seen} replayed`;
}

export const seenOf = (status: number, text: string): Seen => `${status} ${text}`.trim();
