import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { atExit } from '../load/support/processes.ts';
import type {
  Instance,
  InstanceOptions,
  ReadAsk,
  ReadDone,
  RevokeAsk,
  Upstream,
  WriteAsk,
  WriteDone,
} from './views-instance.ts';
import { addressOf, type Member, type MemberOptions, WINDOW_MS } from './views-run.ts';
import { ViewsRelay } from './views-relay.ts';

/** A call of the instance, or one of its upstream. */
export interface Called {
  readonly id: number;
  readonly name: keyof Instance | keyof Upstream | 'open';
  readonly args: readonly unknown[];
}

export interface Returned {
  readonly id: number;
  readonly value: unknown;
}

export type Opened = Pick<InstanceOptions, 'address' | 'windowMs' | 'settlingMs'>;

/** Some processes. Each that is free may be opened. */
export class InstanceProcesses {
  readonly #all: readonly InstanceProcess[];
  readonly #free: InstanceProcess[];

  constructor(count: number) {
    this.#all = Array.from({ length: count }, () => new InstanceProcess());
    this.#free = [...this.#all];
  }

  readonly open = async (options: MemberOptions): Promise<Member> => {
    const one = this.#free.pop();
    if (!one) throw new Error('no process is free');
    return one.open(options, () => void this.#free.push(one));
  };

  async end(): Promise<void> {
    await Promise.all(this.#all.map((one) => one.end()));
  }
}

/** A process with an instance in it, one after the other. */
class InstanceProcess implements Instance {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (value: unknown) => void>();
  #upstream: Upstream | undefined;
  #closed: () => void = () => undefined;
  #calls = 0;

  constructor() {
    const child = fork(new URL('views-child.ts', import.meta.url), {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#child = child;
    atExit(() => child.kill('SIGKILL'));
    child.on('message', (message: Called | Returned) => {
      if ('value' in message) this.#returned(message);
      else void this.#answer(message);
    });
  }

  /** In place of the one before. */
  async open({ port, db, upstream, delay }: MemberOptions, closed: () => void): Promise<Member> {
    this.#upstream = upstream;
    this.#closed = closed;
    const relay = await ViewsRelay.open(port, delay);
    const options: Opened = { address: addressOf(relay.port, db), windowMs: WINDOW_MS, settlingMs: 0 };
    await this.#call('open', options);
    return {
      instance: this,
      relay,
      stop: () => {
        this.#child.kill('SIGSTOP');
        return () => void this.#child.kill('SIGCONT');
      },
    };
  }

  read(ask: ReadAsk): Promise<ReadDone> {
    return this.#call('read', ask) as Promise<ReadDone>;
  }

  write(ask: WriteAsk): Promise<WriteDone> {
    return this.#call('write', ask) as Promise<WriteDone>;
  }

  revoke(ask: RevokeAsk): Promise<boolean> {
    return this.#call('revoke', ask) as Promise<boolean>;
  }

  async close(): Promise<void> {
    await this.#call('close');
    this.#closed();
  }

  async end(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  #call(name: Called['name'], ...args: unknown[]): Promise<unknown> {
    return new Promise((resolve) => {
      const id = ++this.#calls;
      this.#waiting.set(id, resolve);
      this.#child.send({ id, name, args } satisfies Called);
    });
  }

  #returned({ id, value }: Returned): void {
    this.#waiting.get(id)?.(value);
    this.#waiting.delete(id);
  }

  async #answer({ id, name, args }: Called): Promise<void> {
    const call = this.#upstream?.[name as keyof Upstream] as (...given: unknown[]) => Promise<unknown>;
    this.#child.send({ id, value: await call(...args) } satisfies Returned);
  }
}
