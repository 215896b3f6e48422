import { matchPath, type OperationId } from '../support/account-api.ts';
import type { Method } from '../../src/upstream/operation.ts';
import { inProcess, type InProcess } from '../gateway/in-process.ts';
import { type HeldCall, HeldUpstream, invalidates, type Mark, marksIn, type Outcome, type Thing } from './upstream.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import { secret } from '../support/secrets.ts';

export type Command =
  | { readonly do: 'read'; readonly account: number; readonly path: string; readonly wants: string }
  | { readonly do: 'batch'; readonly account: number; readonly paths: readonly string[] }
  | {
      readonly do: 'write';
      readonly account: number;
      readonly method: string;
      readonly path: string;
      readonly body?: string;
    }
  | { readonly do: 'end'; readonly nth: number; readonly outcome: Outcome }
  | { readonly do: 'leave'; readonly nth: number }
  | { readonly do: 'wait'; readonly seconds: number }
  | { readonly do: 'flood' };

/** From `answeredAt` on, nobody may be shown what `covers` says as it was at `before` or earlier. */
interface Fence {
  readonly covers: (read: Thing) => boolean;
  readonly before: number;
  readonly answeredAt: number;
  readonly by: string;
}

interface Underway {
  readonly leave: AbortController;
  readonly over: Promise<void>;
}

const CROWD = 20;

/** All that follows without time passing or a held call ending. */
const settled = () => new Promise<void>((resolve) => void setImmediate(() => setImmediate(resolve)));

/** One schedule on one gateway, and what went wrong in it. */
class Run {
  readonly violations: string[] = [];
  readonly #tokens = Array.from({ length: 2 + CROWD }, () => secret());
  readonly #upstream = new HeldUpstream((token) => this.#nameOf(token));
  readonly #clock = clockOfDeadlines();
  readonly #gateway: InProcess;
  readonly #fences: Fence[] = [];
  readonly #underway = new Set<Underway>();
  #requests = 0;

  constructor(maxBytes: number) {
    const env = { CACHE_MAX_BYTES: String(maxBytes) };
    this.#gateway = inProcess({ transport: this.#upstream.transport, clock: this.#clock, env });
  }

  async play(commands: readonly Command[]): Promise<void> {
    for (const command of commands) {
      const refused = this.#step(command);
      await settled();
      if (refused) this.#fences.push({ ...refused, answeredAt: this.#upstream.tick() });
      if (command.do === 'flood') await this.#endAll((call) => call.account.startsWith('crowd'));
    }
    await this.#endAll(() => true);
    await Promise.all(Array.from(this.#underway, ({ over }) => over));
    this.violations.push(...this.#upstream.unexpected);
    await this.#gateway.close();
  }

  /** Comes back with what a refusal has ruled out, once that has sunk in. */
  #step(command: Command): Omit<Fence, 'answeredAt'> | undefined {
    if (command.do === 'end') return this.#end(pick(this.#upstream.held, command.nth), command.outcome);
    if (command.do === 'read') this.#read(command.account, command.path, { headers: headersFor(command.wants) });
    if (command.do === 'batch') this.#batch(command.account, command.paths);
    if (command.do === 'write') this.#write(command);
    if (command.do === 'leave') pick([...this.#underway], command.nth)?.leave.abort();
    if (command.do === 'wait') this.#clock.advance(command.seconds * 1000);
    if (command.do === 'flood') for (let i = 2; i < 2 + CROWD; i += 1) this.#read(i, '/api/v2/referral/config/', {});
    return undefined;
  }

  #nameOf(token: string): string | undefined {
    const index = this.#tokens.indexOf(token);
    return index < 0 ? undefined : this.#name(index);
  }

  #name(index: number): string {
    return index < 2 ? `account${index}` : `crowd${index}`;
  }

  #batch(account: number, paths: readonly string[]): void {
    const requests = paths.map((path, index) => ({ id: String(index), path }));
    const headers = { 'Content-Type': 'application/json' };
    this.#read(account, '/bff/v1/batch', { method: 'POST', headers, body: JSON.stringify({ requests }) });
  }

  #read(account: number, path: string, init: RequestInit): void {
    const startedAt = this.#upstream.tick();
    const fences = this.#fences.filter(({ answeredAt }) => answeredAt < startedAt);
    this.#send({ account, path, init, requestId: this.#requestId() }, (status, text) => {
      if (status === 500) this.violations.push(`${path}: internal error`);
      for (const mark of marksIn(text)) this.#check(mark, this.#name(account), fences);
    });
  }

  #check(mark: Mark, account: string, fences: readonly Fence[]): void {
    if (mark.account !== account) this.violations.push(`${account} was shown ${mark.operation} of ${mark.account}`);
    for (const { covers, before, by } of fences) {
      if (covers(mark) && mark.at <= before)
        this.violations.push(
          `${account} was shown ${mark.operation} ${mark.id} of ${mark.at}, from before ${by} at ${before}`,
        );
    }
  }

  /** Done or unknown, it counts from the moment that the upstream was through with it. */
  #write({ account, method, path, body }: Extract<Command, { do: 'write' }>): void {
    const requestId = this.#requestId();
    const init = { method, ...(body !== undefined && { body, headers: { 'Content-Type': 'application/json' } }) };
    const write = thingAt(this.#name(account), method, path);
    this.#send({ account, path, init, requestId }, (status) => {
      const before = this.#upstream.endedAt.get(requestId);
      if (before === undefined || (status >= 400 && status < 500)) return;
      const answeredAt = this.#upstream.tick();
      this.#fences.push({ covers: (read) => invalidates(write, read), before, answeredAt, by: `${method} ${path}` });
    });
  }

  #end(call: HeldCall | undefined, outcome: Outcome): Omit<Fence, 'answeredAt'> | undefined {
    call?.end(outcome);
    if (!call || (outcome !== 'unauthorized' && outcome !== 'forbidden')) return undefined;
    const covers = ({ account }: Thing) => account === call.account;
    return { covers, before: this.#upstream.endedAt.get(call.requestId) ?? 0, by: `${outcome} on ${call.operation}` };
  }

  #send(
    request: { account: number; path: string; init: RequestInit; requestId: string },
    done: (status: number, text: string) => void,
  ): void {
    const leave = new AbortController();
    const headers = { ...(request.init.headers as Record<string, string>), 'X-Request-Id': request.requestId };
    const asked = this.#gateway.ask(request.path, this.#tokens[request.account] ?? '', {
      ...request.init,
      headers,
      signal: leave.signal,
    });
    const over = asked.then(async (response) => done(response.status, await response.text()));
    const underway = { leave, over };
    this.#underway.add(underway);
    void over.finally(() => this.#underway.delete(underway));
  }

  async #endAll(which: (call: HeldCall) => boolean): Promise<void> {
    for (let call = this.#upstream.held.find(which); call; call = this.#upstream.held.find(which)) {
      call.end('good');
      await settled();
    }
  }

  #requestId(): string {
    return `request-${++this.#requests}`;
  }
}

const headersFor = (wants: string): Record<string, string> => (wants === 'any' ? {} : { 'Cache-Control': wants });

const pick = <T>(items: readonly T[], nth: number): T | undefined => items[nth % items.length];

const thingAt = (account: string, method: string, path: string): Thing => {
  const match = matchPath(path);
  // Ids of the table, which `match` reads too.
  const operation = match?.methods.get(method as Method)?.id as OperationId;
  return { account, operation, id: match?.id ?? '' };
};

/** Plays a schedule to its end; comes back with every broken promise. */
export async function play(commands: readonly Command[], maxBytes: number): Promise<readonly string[]> {
  const run = new Run(maxBytes);
  await run.play(commands);
  return run.violations;
}
