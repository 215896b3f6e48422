import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const TICK_MS = 5;
const HEAD_END = Buffer.from('\r\n\r\n');

export interface Sample {
  readonly status: number;
  /** From the moment at which it was due, so that a generator that is late hides nothing. */
  readonly ms: number;
}

interface Due {
  readonly text: string;
  readonly at: number;
}

interface Plan {
  readonly port: number;
  /** The bytes of the request with this number. */
  readonly request: (index: number) => string;
  readonly maxConnections: number;
}

/** Sends requests when they are due, whatever became of those before: on an idle connection, else on a new one. */
export class OpenLoop {
  readonly samples: Sample[] = [];
  failed = 0;
  connections = 0;
  readonly #plan: Plan;
  readonly #idle: Socket[] = [];
  readonly #open = new Set<Socket>();
  readonly #waiting: Due[] = [];
  #sent = 0;
  #pending = 0;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  /** This many a second for so long. */
  async run({ rate, seconds }: { readonly rate: number; readonly seconds: number }): Promise<void> {
    const beganAt = performance.now();
    for (let due = 0; due < rate * seconds; await sleep(TICK_MS)) {
      const until = Math.min(rate * seconds, ((performance.now() - beganAt) / 1_000) * rate);
      for (; due < until; due++) this.send(beganAt + (due * 1_000) / rate);
    }
  }

  send(at: number = performance.now()): void {
    this.#pending++;
    const due = { text: this.#plan.request(this.#sent++), at };
    const socket = this.#idle.pop();
    if (socket) this.#put(socket, due);
    else if (this.connections < this.#plan.maxConnections) this.#put(this.#connect(), due);
    else this.#waiting.push(due);
  }

  /** Resolves when all that was sent has ended, or after `ms`. */
  async settled(ms: number): Promise<void> {
    const endAt = performance.now() + ms;
    while (this.#pending > 0 && performance.now() < endAt) await sleep(TICK_MS);
    this.failed += this.#pending;
    this.#pending = 0;
  }

  close(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #connect(): Socket {
    this.connections++;
    const socket = connect({ port: this.#plan.port, host: '127.0.0.1', noDelay: true });
    this.#open.add(socket);
    socket.on('error', () => {}); // 'close' follows
    return socket;
  }

  #put(socket: Socket, { text, at }: Due): void {
    let bytes: Buffer = Buffer.alloc(0);
    const leave = () => {
      socket.off('data', take).off('close', lost);
      this.#pending--;
    };
    const take = (chunk: Buffer) => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      const status = wholeAnswer(bytes);
      if (status === undefined) return;
      leave();
      this.samples.push({ status, ms: performance.now() - at });
      this.#free(socket);
    };
    const lost = () => {
      leave();
      this.failed++;
      this.connections--;
      this.#open.delete(socket);
    };
    socket.on('data', take).once('close', lost).write(text);
  }

  #free(socket: Socket): void {
    const next = this.#waiting.shift();
    if (next) this.#put(socket, next);
    else this.#idle.push(socket);
  }
}

/** The status, once the answer is there as long as it says to be. */
function wholeAnswer(bytes: Buffer): number | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return undefined;
  const head = bytes.toString('latin1', 0, end);
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
  return bytes.length >= end + HEAD_END.length + length ? Number(head.slice(9, 12)) : undefined;
}
