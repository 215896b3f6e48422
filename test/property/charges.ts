import { recordOf } from '../support/pairs.ts';
import { noAnswer, type RawAnswer, type Transport } from '../../src/upstream/transport.ts';

/** What an upstream makes of a write, and what the gateway has to make of that. */
interface Ending {
  /** What the transport comes back or fails with; a `bug` is a fault of ours. */
  readonly sends: RawAnswer | Parameters<typeof noAnswer>[0] | 'bug';
  readonly status: number;
  /** Of the problem; a definite answer has none. */
  readonly code?: string;
  /** Whether it is known what became of the write: done, not done, or not known. */
  readonly proves: 'done' | 'nothing_happened' | 'nothing';
}

const raw = (status: number, text: string, headers: RawAnswer['headers'] = {}): RawAnswer => ({
  status,
  headers,
  body: { text },
});

const refused = (status: number, code: string, answer = raw(status, JSON.stringify({ detail: 'No.', code }))) =>
  ({ sends: answer, status, code, proves: 'nothing_happened' }) as const;

const unknown = (sends: Ending['sends'], status: number, code: string) =>
  ({ sends, status, code, proves: 'nothing' }) as const;

/** Seconds for which the upstream's 429 holds the account back. */
export const HOLD_SECONDS = 7;

const RECEIPT = '{"payment_required":false,"plan":<charge>,"x_paid":25.0}';

/** `<charge>` becomes the number of the charge. */
export const ENDINGS = {
  good: { sends: raw(200, RECEIPT), status: 200, proves: 'done' },
  created: { sends: raw(201, RECEIPT), status: 201, proves: 'done' },
  empty: { sends: raw(204, ''), status: 204, proves: 'done' },
  declined: refused(400, 'card_declined'),
  unauthenticated: refused(401, 'unauthenticated'),
  suspended: refused(403, 'account_suspended'),
  missing: refused(404, 'not_found', raw(404, '<html>')),
  conflict: refused(409, 'conflict', raw(409, '')),
  unpayable: refused(422, 'plan_sold_out'),
  cutRefusal: refused(402, 'payment_required', { status: 402, headers: {}, body: { flaw: 'cut_short' } }),
  limited: refused(429, 'rate_limited', raw(429, '', { 'retry-after': String(HOLD_SECONDS) })),
  unreachable: { sends: 'no_connection', status: 502, code: 'upstream_unreachable', proves: 'nothing_happened' },
  unconnected: { sends: 'connect_timeout', status: 504, code: 'upstream_timeout', proves: 'nothing_happened' },
  failed: unknown(raw(500, '{"detail":"Oops."}'), 502, 'upstream_bad_response'),
  badGateway: unknown(raw(502, ''), 502, 'upstream_bad_response'),
  unavailable: unknown(raw(503, '', { 'retry-after': '1' }), 503, 'upstream_unavailable'),
  timedOut: unknown(raw(504, ''), 504, 'upstream_timeout'),
  html: unknown(raw(200, '<html>'), 502, 'upstream_bad_response'),
  moved: unknown(raw(302, '', { location: '/' }), 502, 'upstream_bad_response'),
  cut: unknown({ status: 200, headers: {}, body: { flaw: 'cut_short' } }, 502, 'upstream_bad_response'),
  broken: unknown('broken', 502, 'upstream_unreachable'),
  malformed: unknown('malformed', 502, 'upstream_bad_response'),
  bug: unknown('bug', 500, 'internal_error'),
} as const satisfies Record<string, Ending>;

export type EndingName = keyof typeof ENDINGS;

export const endingOf = (name: EndingName): Ending => ENDINGS[name];

export interface ChargeCall {
  /** The credential and the key that it came with. */
  readonly token: string;
  readonly key: string | undefined;
  readonly requestId: string;
  readonly at: number;
  end(name: EndingName, isChargedIfUnknown: boolean): void;
}

/** What an account has paid with a key. */
export interface Charge extends Pick<ChargeCall, 'token' | 'key' | 'at'> {
  /** What the upstream said of it, where it said anything of use. */
  readonly answer?: { readonly status: number; readonly text: string };
}

/** An upstream that takes money: every call is held until it is ended, and what was paid is written down. */
export class Till {
  /** Oldest first. */
  readonly held: ChargeCall[] = [];
  readonly charges: Charge[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  readonly transport: Transport = ({ headers: pairs, signal }) => {
    const headers = recordOf(pairs);
    const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>();
    const over = (): void => {
      this.held.splice(this.held.indexOf(call), 1);
      signal.removeEventListener('abort', abandon);
    };
    const abandon = () => {
      over();
      // The worst: it took the money, and was about to say so.
      this.#charge(call);
      reject(signal.reason);
    };
    const call: ChargeCall = {
      token: (headers['authorization'] ?? '').replace('Token ', ''),
      key: headers['idempotency-key'],
      requestId: headers['x-request-id'] ?? '',
      at: this.#now(),
      end: (name, isChargedIfUnknown) => {
        over();
        const { sends, proves } = endingOf(name);
        if (proves === 'nothing' && isChargedIfUnknown) this.#charge(call);
        if (sends === 'bug') reject(new TypeError('a bug'));
        else if (typeof sends === 'string') reject(noAnswer(sends, 'reset'));
        else resolve(proves === 'done' ? this.#receipt(call, sends) : sends);
      },
    };
    this.held.push(call);
    signal.addEventListener('abort', abandon);
    return promise;
  };

  #receipt(call: ChargeCall, sends: RawAnswer): RawAnswer {
    const number = String(this.charges.length + 1);
    const text = 'text' in sends.body ? sends.body.text.replace('<charge>', number) : '';
    this.#charge(call, { status: sends.status, text });
    return { ...sends, body: { text } };
  }

  #charge({ token, key, at }: ChargeCall, answer?: Charge['answer']): void {
    this.charges.push({ token, key, at, ...(answer && { answer }) });
  }
}
