import { exampleRequest } from '../../support/examples.ts';
import { type Client, type Outcome, pace, percentile, type Wanted } from '../support/client.ts';

/** What the gateway holds for an account, and may not lose because of another. */
type Kept = 'copies' | 'records' | 'limits';

interface Step {
  readonly wanted: Wanted;
  /** Calls of the upstream that it costs. */
  readonly calls: 0 | 1;
  readonly status: number;
  /** What is lost where it is answered with 200, but not from what is held. */
  readonly keeps?: Kept;
}

/** What became of the neighbours in one stretch. */
export interface Fared {
  readonly many: number;
  readonly good: number;
  readonly p50: number;
  readonly p99: number;
  /** Calls of the upstream that it should have cost. */
  readonly calls: number;
  readonly lost: Readonly<Record<Kept, number>>;
  /** By status, of those that were not good. */
  readonly bad: Readonly<Record<string, number>>;
}

export const AGENT = 'neighbour';
const RATE = 50;
const ACCOUNTS = 10;
const QUIET_PAGES = 10;
const QUIET_WRITES = 50;
const QUIET_WINDOWS = 20;
const QUIET_HOLDS = 5;
/** What the window of a limit lasts is a minute. */
const WITHIN_WINDOW_SECONDS = 50;
const SETTLED_MS = 15_000;

const READS = '/api/v2/payment/transaction/';
const HOT = ['/api/v2/subscription/', '/api/v2/referral/config/', '/api/v2/notification/', READS];

const HEADERS = { 'User-Agent': AGENT, 'X-Forwarded-For': '198.51.100.1' };

const nameOf = (place: number) => `neighbour-${place % ACCOUNTS}`;

const hit = (account: string, path: string): Step => ({
  wanted: { path, account },
  calls: 0,
  status: 200,
  keeps: 'copies',
});

const cold = (step: Step): Step => ({ wanted: step.wanted, calls: 1, status: step.status });

const quietPage = (place: number) => hit(nameOf(place), `${READS}?page=${Math.floor(place / ACCOUNTS) + 1}`);

/** Purchases are of accounts of their own: they make all copies of theirs worthless. */
const write = (place: number): Step => {
  const isPurchase = place % 10 === 0;
  const { method, path, body = '{}' } = exampleRequest(isPurchase ? 'purchasePlan' : 'createApiKey');
  return {
    wanted: {
      method,
      path,
      account: isPurchase ? `buyer-${place % ACCOUNTS}` : nameOf(place),
      headers: { 'Idempotency-Key': `neighbour-${place}` },
      body: { ...(JSON.parse(body) as object), x_place: place },
    },
    calls: 1,
    status: 200,
    keeps: 'records',
  };
};

const replay = (place: number): Step => ({ ...write(place), calls: 0 });

const quietWindow = (place: number) => hit(`window-${place}`, READS);

/** The upstream has told the account to wait. */
const held = (place: number): Step => ({
  wanted: { path: `${READS}?page=1`, account: `held-${place}` },
  calls: 0,
  status: 429,
  keeps: 'limits',
});

const some = (many: number, step: (place: number) => Step) => Array.from({ length: many }, (_, place) => step(place));

const quietReads = () => [...some(ACCOUNTS * QUIET_PAGES, quietPage), ...some(QUIET_WINDOWS, quietWindow)];

/** Accounts that use the gateway as usual, and know of each answer what it should have been. */
export class Neighbours {
  readonly #client: Client;
  /** When each account's window ends, as it was told. */
  readonly #windows = new Map<string, { readonly earliest: number; readonly latest: number }>();
  /** Keys whose write was carried out. */
  readonly #written = new Set<string>();
  #place = QUIET_WRITES + ACCOUNTS;
  #answers: (Outcome & { readonly step: Step })[] = [];
  #lost = { copies: 0, records: 0, limits: 0 };

  constructor(client: Client) {
    this.#client = client;
  }

  /** Whatever will be held is held, and what is asked here has been asked for the first time. */
  async settleIn(): Promise<void> {
    const overviews = some(ACCOUNTS, (place) => hit(nameOf(place), '/bff/v1/account-overview'));
    const hot = HOT.flatMap((path) => some(ACCOUNTS, (place) => hit(nameOf(place), path)));
    const reads = [...overviews, ...hot, ...quietReads()];
    for (const step of [...reads, ...some(QUIET_WRITES, write)]) this.#note(step, await this.#send(step.wanted));
    for (const { wanted } of some(QUIET_HOLDS, held)) {
      await this.#send({ ...wanted, path: READS });
      await this.#send({ ...wanted, path: `${READS}?fault=429&retry=3600` });
    }
  }

  /** Everything for so long, and at its end whatever was left alone meanwhile. */
  async live(seconds: number): Promise<Fared> {
    this.#answers = [];
    this.#lost = { copies: 0, records: 0, limits: 0 };
    const windows = some(QUIET_WINDOWS, quietWindow);
    const within = Math.min(seconds, WITHIN_WINDOW_SECONDS);
    const steps = [...windows, ...this.#usual(within), ...windows, ...this.#usual(seconds - within)];
    const all = [...steps, ...quietReads(), ...some(QUIET_HOLDS, held), ...some(QUIET_WRITES, replay)];
    const left = all[Symbol.iterator]();
    await pace({ rate: RATE, seconds: all.length / RATE }, (at) => {
      const { value: step } = left.next();
      if (step) void this.#send(step.wanted, at).then((outcome) => this.#note(step, outcome));
    });
    await this.#client.settled(SETTLED_MS);
    return this.#fared(all);
  }

  #usual(seconds: number): Step[] {
    return some(seconds * RATE, () => this.#next(this.#place++));
  }

  /** Of a hundred: six writes and as many replays, four cold reads, four overviews, hits. */
  #next(place: number): Step {
    const account = nameOf(Math.floor(place / HOT.length));
    if (place % 100 === 10 || place % 20 === 5) return write(place);
    if (place % 100 === 60 || place % 20 === 15) return replay(place - QUIET_WRITES);
    if (place % 20 === 0) return cold(hit(account, `${READS}?page=${QUIET_PAGES + place}`));
    return hit(account, place % 20 === 10 ? '/bff/v1/account-overview' : (HOT[place % HOT.length] ?? READS));
  }

  #send(wanted: Wanted, at?: number): Promise<Outcome> {
    return this.#client.send({ ...wanted, headers: { ...HEADERS, ...wanted.headers } }, at);
  }

  #note(step: Step, outcome: Outcome): void {
    this.#answers.push({ ...outcome, step });
    const { wanted, keeps } = step;
    if (outcome.status === 200 && keeps && this.#isLost(keeps, wanted, outcome)) this.#lost[keeps]++;
    if (this.#hasNewWindow(wanted.account ?? '', outcome)) this.#lost.limits++;
  }

  #isLost(kept: Kept, { headers = {} }: Wanted, outcome: Outcome): boolean {
    if (kept === 'copies') return !outcome.cacheStatus.includes('hit') && !outcome.text.includes('"complete":true');
    if (kept === 'limits') return true;
    if (outcome.headers['idempotency-replayed'] === 'true') return false;
    const key = headers['Idempotency-Key'] ?? '';
    const isSecond = this.#written.has(key);
    this.#written.add(key);
    return isSecond;
  }

  /** Before the one that it had is over. The gateway has said when it ends, in whole seconds, after it was asked. */
  #hasNewWindow(account: string, { at, headers }: Outcome): boolean {
    const seconds = /;t=(\d+)/.exec(String(headers['ratelimit']))?.[1];
    if (seconds === undefined) return false;
    const now = performance.now();
    const [earliest, latest] = [at + (Number(seconds) - 1) * 1_000, now + Number(seconds) * 1_000];
    const known = this.#windows.get(account);
    const isSame = known !== undefined && earliest <= known.latest;
    if (!isSame) this.#windows.set(account, { earliest, latest });
    return known !== undefined && !isSame && now < known.earliest;
  }

  #fared(steps: readonly Step[]): Fared {
    const times = this.#answers.map(({ ms }) => ms);
    const isGood = ({ step, status }: { step: Step; status: number }) => status === step.status;
    const bad: Record<string, number> = {};
    for (const { status } of this.#answers.filter((one) => !isGood(one))) bad[status] = (bad[status] ?? 0) + 1;
    return {
      many: steps.length,
      good: this.#answers.filter(isGood).length,
      p50: percentile(times, 0.5),
      p99: percentile(times, 0.99),
      calls: steps.reduce((sum, { calls }) => sum + calls, 0),
      lost: this.#lost,
      bad,
    };
  }
}
