import { exampleRequest } from '../../support/examples.ts';
import { answer } from '../../support/upstream.ts';
import { DAY, HOLD, IN_PROGRESS, PROOFS, REUSED, UNKNOWN, UNKNOWNS } from './helpers.ts';

/** What the upstream says of a request that it has carried out. */
export const receiptOf = (status: number, id: string) => (status === 204 ? '' : `{"plan":"${id}","x_paid":25.0}`);
const GOOD = [answer(200), answer(201), answer(204)] as const;

/** All that an upstream makes of a write but to keep silent, and what that proves. */
export const ENDINGS = [
  ...GOOD.map((reply) => ({ reply, seen: undefined, proves: 'done' as const })),
  ...PROOFS.map(([, reply, seen]) => ({ reply, seen, proves: 'nothing_happened' as const })),
  ...UNKNOWNS.flatMap(([, reply, seen]) =>
    reply === 'hang' ? [] : { reply, seen: `${seen} unknown`, proves: 'nothing' as const },
  ),
];

export type Ending = (typeof ENDINGS)[number];

const PURCHASE = exampleRequest('purchasePlan').path;

/** What a client asks for: `prints` are texts of one body, which mean the same. */
export const ASKS: readonly { readonly path: string; readonly prints: readonly string[] }[] = [
  {
    path: PURCHASE,
    prints: [
      '{"term":"monthly","proxy_countries":{"US":5,"FR":1}}',
      ' { "proxy_countries" : {"FR":1,\n"US":5}, "term":"monthly"}\n',
      String.raw`{"\u0074erm":"month\u006cy","proxy_countries":{"\u0055S":5,"FR":1}}`,
    ],
  },
  { path: PURCHASE, prints: ['{"term":"yearly","proxy_countries":{"US":5,"FR":1}}'] },
  { path: PURCHASE, prints: ['{"label":"é"}'] },
  { path: '/api/v2/apikey/', prints: ['{"label":"é"}', String.raw`{"label":"\u00e9"}`] },
  // These take no body: one that comes all the same is compared, and not sent.
  ...['5', '6'].map((id) => ({ path: `/api/v2/subuser/${id}/refresh/`, prints: ['{}', '{ }'] })),
  ...['3', '4'].map((id) => ({ path: `/api/v2/proxy/list/refresh/?plan_id=${id}`, prints: ['{}'] })),
];

/** Two equal ones at one moment are refused without a key, too. */
const isPurchase = (ask: number) => ASKS[ask]!.path === PURCHASE;

export interface Wanted {
  readonly account: number;
  /** Of a few; or none. */
  readonly key: number | undefined;
  /** Index into `ASKS`, and of the print of it. */
  readonly ask: number;
  readonly print: number;
}

/** As `summaryOf` has it. */
export type Seen = string;

type State = 'under_way' | 'unknown' | { readonly seen: Seen };

interface Sent extends Wanted {
  readonly id: string;
  readonly sentAt: number;
}

/** Until then an equal one may not follow, should its outcome not be known. */
interface Purchase extends Wanted {
  readonly until: number;
  readonly isUnknown: boolean;
}

const REQUEST = 10;
const LATE = 60;
const TIMEOUT = 5;

/** What section 7 of the contract says of writes, and nothing of how it is done. Times are in seconds. */
export class Expectation {
  /** Oldest first. */
  readonly underWay: Sent[] = [];
  readonly answers = new Map<string, Seen>();
  readonly #records = new Map<string, { readonly ask: number; readonly expiresAt: number; readonly state: State }>();
  /** Purchases under way or of unknown outcome, by request. */
  readonly #purchases = new Map<string, Purchase>();
  readonly #heldUntil = new Map<number, number>();
  /** Calls that the upstream has had. */
  sent = 0;

  ask(id: string, wanted: Wanted, now: number): void {
    const isHeld = (this.#heldUntil.get(wanted.account) ?? 0) > now;
    // Who is held back has an answer that is known only with a key.
    const known = wanted.key === undefined && isHeld ? undefined : this.#knownOf(wanted, now);
    if (known ?? isHeld) this.answers.set(id, known ?? '429 rate_limited');
    else this.#begin(id, wanted, now);
  }

  /** What is known that answers it. */
  #knownOf(wanted: Wanted, now: number): Seen | undefined {
    const record = this.#records.get(slotOf(wanted));
    if (wanted.key !== undefined && record && (record.state === 'under_way' || record.expiresAt > now))
      return record.ask === wanted.ask ? again(record.state) : REUSED;
    if (!isPurchase(wanted.ask)) return undefined;
    const equal = [...this.#purchases.values()].filter(
      ({ account, ask, key, until }) =>
        account === wanted.account &&
        ask === wanted.ask &&
        until > now &&
        (key === undefined || wanted.key === undefined),
    );
    if (equal.length === 0) return undefined;
    return again(equal.every(({ isUnknown }) => isUnknown) ? 'unknown' : 'under_way');
  }

  #begin(id: string, wanted: Wanted, now: number): void {
    this.#records.set(slotOf(wanted), { ask: wanted.ask, expiresAt: now + DAY, state: 'under_way' });
    if (isPurchase(wanted.ask)) this.#purchases.set(id, { ...wanted, until: now + REQUEST + LATE, isUnknown: false });
    this.underWay.push({ ...wanted, id, sentAt: now });
    this.sent++;
  }

  end(id: string, ending: Ending, now: number): void {
    const { status } = ending.proves === 'done' ? ending.reply : { status: 0 };
    const seen = ending.seen ?? `${status} ${receiptOf(status, id)}`.trim();
    const call = this.#over(id, seen);
    if (seen === '429 rate_limited') this.#heldUntil.set(call.account, now + HOLD);
    if (ending.proves === 'nothing') return this.#settle(call, 'unknown');
    if (ending.proves === 'done') return this.#settle(call, { seen });
    this.#purchases.delete(id);
    this.#records.delete(slotOf(call));
  }

  /** What has been under way for too long is given up. */
  passTo(now: number): void {
    for (const call of this.underWay.filter(({ sentAt }) => sentAt + TIMEOUT <= now)) {
      this.#over(call.id, '504 upstream_timeout unknown');
      // A wait beyond the end of the request is a stall: only at its end it is known that the outcome is not.
      const known = this.#purchases.get(call.id);
      if (known) this.#purchases.set(call.id, { ...known, until: Math.max(known.until, now + LATE) });
      this.#settle(call, 'unknown', now + 0.001); // it is told of once, however late
    }
  }

  #over(id: string, seen: Seen): Sent {
    const at = this.underWay.findIndex((call) => call.id === id);
    const [call] = this.underWay.splice(at, 1);
    this.answers.set(id, seen);
    return call!;
  }

  #settle(call: Sent, state: State, least = 0): void {
    const known = this.#purchases.get(call.id);
    if (known && state === 'unknown') this.#purchases.set(call.id, { ...known, isUnknown: true });
    else this.#purchases.delete(call.id);
    const expiresAt = Math.max(call.sentAt + DAY, least);
    this.#records.set(slotOf(call), { ask: call.ask, expiresAt, state });
  }
}

/** Where the record of a key stands; without one nobody looks there. */
const slotOf = ({ account, key }: Wanted) => `${account} ${key}`;

function again(state: State): Seen {
  if (state === 'under_way') return IN_PROGRESS;
  return state === 'unknown' ? UNKNOWN : `${state.seen} replayed`;
}
