import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Questions and their replies, or a subscription and its messages: an instance has a connection for each. */
export type Kind = 'questions' | 'messages';

/** To Redis, or back from it. */
export type Direction = 'there' | 'back';

/** What is kept back: by kind and direction, all where they are absent. */
interface Hold {
  readonly kind?: Kind | undefined;
  readonly direction?: Direction | undefined;
}

/** Timers are no finer. */
const TICK_MS = 0.5;

/** One direction of a connection: what is put in comes out in order, late, and not while it is held. */
class Pipe {
  readonly #queue: { readonly at: number; readonly act: () => void }[] = [];
  readonly #delay: () => number;
  readonly #isHeld: () => boolean;
  #last = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(delay: () => number, isHeld: () => boolean) {
    this.#delay = delay;
    this.#isHeld = isHeld;
  }

  get size(): number {
    return this.#queue.length;
  }

  put(act: () => void): void {
    this.#last = Math.max(this.#last, performance.now() + this.#delay());
    this.#queue.push({ at: this.#last, act });
    if (this.#queue.length === 1) this.run();
  }

  run(): void {
    clearTimeout(this.#timer);
    for (let next = this.#queue[0]; next && !this.#isHeld(); next = this.#queue[0]) {
      const left = next.at - performance.now();
      if (left > TICK_MS) {
        this.#timer = setTimeout(() => this.run(), left);
        return;
      }
      this.#queue.shift();
      next.act();
    }
  }

  /** What is in it is lost. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#queue.length = 0;
  }
}

const SUBSCRIBE = /\*\d+\r\n\$9\r\nsubscribe\r\n(?:\$\d+\r\n[^\r]*\r\n)+/i;
const MESSAGE = /^\*3\r\n\$7\r\nmessage\r\n/;

/** Where the reply (RESP2) ends that begins at `from`; -1 where it is not whole yet. */
function endOfReply(text: string, from: number): number {
  const line = text.indexOf('\r\n', from);
  if (line < 0) return -1;
  const count = Number(text.slice(from + 1, line));
  const type = text[from];
  if (type === '$') {
    const end = line + 2 + (count < 0 ? 0 : count + 2);
    return end > text.length ? -1 : end;
  }
  let end = line + 2;
  for (let left = type === '*' ? count : 0; left > 0 && end >= 0; left--) end = endOfReply(text, end);
  return end;
}

/** Whole replies, wherever they are cut into chunks. */
function replies(): (chunk: Buffer) => readonly string[] {
  let rest = '';
  return (chunk) => {
    const whole: string[] = [];
    rest += chunk.toString('latin1');
    for (let end = endOfReply(rest, 0); rest !== '' && end > 0; end = endOfReply(rest, 0)) {
      whole.push(rest.slice(0, end));
      rest = rest.slice(end);
    }
    return whole;
  };
}

/** One connection of an instance, and the one to Redis that belongs to it. */
class Line {
  kind: Kind = 'questions';
  readonly there: Pipe;
  readonly back: Pipe;
  readonly #relay: ViewsRelay;
  readonly #client: Socket;
  #server: Socket;
  #subscribe = '';
  /** Confirmations of the relay's own subscription, which nobody is to see. */
  #unseen = 0;

  constructor(relay: ViewsRelay, client: Socket) {
    this.#relay = relay;
    this.#client = client;
    this.there = new Pipe(relay.delay, () => relay.isHeld(this.kind, 'there'));
    this.back = new Pipe(relay.delay, () => relay.isHeld(this.kind, 'back'));
    client.on('error', () => client.destroy());
    client.on('data', (chunk: Buffer) => this.#ask(chunk));
    client.once('close', () => {
      relay.lines.delete(this);
      this.there.put(() => this.#server.destroy());
    });
    this.#server = this.#connect();
  }

  cut(): void {
    this.there.clear();
    this.back.clear();
    this.#client.destroy();
    this.#server.destroy();
    this.#relay.lines.delete(this);
  }

  /** As a proxy does that loses its connection to Redis, and says nothing of it. What is published meanwhile is lost. */
  loseServer(): void {
    const lost = this.#server;
    lost.removeAllListeners('close');
    lost.destroy();
  }

  returnServer(): void {
    if (this.#client.destroyed) return;
    this.#server = this.#connect();
    if (this.kind === 'questions') return;
    this.#unseen++;
    this.#server.write(this.#subscribe);
  }

  #connect(): Socket {
    const server = connect({ port: this.#relay.behind[this.kind], host: '127.0.0.1', noDelay: true });
    const wholeOf = replies();
    server.on('error', () => server.destroy());
    server.once('close', () => this.back.put(() => this.#client.destroy()));
    server.on('data', (chunk: Buffer) => {
      if (this.kind === 'questions') this.#giveBack(chunk);
      else for (const reply of wholeOf(chunk)) this.#hear(reply);
    });
    return server;
  }

  #ask(chunk: Buffer): void {
    const subscribe = this.kind === 'questions' ? SUBSCRIBE.exec(chunk.toString('latin1'))?.[0] : undefined;
    if (subscribe !== undefined) {
      this.kind = 'messages';
      this.#subscribe = subscribe;
      this.#relay.subscriptions++;
      if (this.#relay.behind.messages !== this.#relay.behind.questions) this.#goElsewhere();
    }
    // Not what is asked of a new connection: settings and rights.
    if (this.kind === 'questions' && chunk.includes('evalsha')) this.#relay.asked++;
    this.there.put(() => void (this.#server.destroyed || this.#server.write(chunk)));
  }

  #goElsewhere(): void {
    this.loseServer();
    this.#server = this.#connect();
  }

  #hear(reply: string): void {
    if (this.#unseen > 0 && !MESSAGE.test(reply)) {
      this.#unseen--;
      return;
    }
    if (MESSAGE.test(reply) && this.#relay.isLost()) return;
    this.#giveBack(Buffer.from(reply, 'latin1'));
    if (MESSAGE.test(reply)) this.back.put(() => void this.#relay.heard++);
  }

  #giveBack(chunk: Buffer): void {
    this.back.put(() => void (this.#client.destroyed || this.#client.write(chunk)));
  }
}

/** Stands between an instance and Redis. It tells the subscription from the questions by its first command. */
export class ViewsRelay {
  readonly lines = new Set<Line>();
  /** How late each chunk is, in milliseconds. */
  readonly delay: () => number;
  /** Where new connections lead. */
  readonly behind: Record<Kind, number>;
  /** Subscriptions and pieces of questions that were seen, messages that were passed on, and messages that are still to be lost. */
  subscriptions = 0;
  heard = 0;
  asked = 0;
  losing = 0;
  readonly #holds = new Set<Hold>();
  readonly #server: Server;

  private constructor(behind: number, delay: () => number) {
    this.behind = { questions: behind, messages: behind };
    this.delay = delay;
    this.#server = createServer({ noDelay: true }, (client) => void this.lines.add(new Line(this, client)));
  }

  static async open(behind: number, delay: () => number = () => 0): Promise<ViewsRelay> {
    const relay = new ViewsRelay(behind, delay);
    await once(relay.#server.listen(0, '127.0.0.1'), 'listening');
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  isHeld(kind: Kind, direction: Direction): boolean {
    for (const hold of this.#holds)
      if ((hold.kind ?? kind) === kind && (hold.direction ?? direction) === direction) return true;
    return false;
  }

  /** From now on that stands still, until what comes back is called. */
  hold(kind?: Kind, direction?: Direction): () => void {
    const hold = { kind, direction };
    this.#holds.add(hold);
    return () => {
      this.#holds.delete(hold);
      for (const line of this.lines) for (const pipe of [line.there, line.back]) pipe.run();
    };
  }

  /** How many chunks are kept back or under way. */
  kept(kind: Kind, direction: Direction): number {
    return this.#of(kind).reduce((sum, line) => sum + line[direction].size, 0);
  }

  isLost(): boolean {
    if (this.losing === 0) return false;
    this.losing--;
    return true;
  }

  /**
   * Loses its connections to Redis without a word, until what comes back is called. It then subscribes again by itself;
   * what was published meanwhile is lost.
   */
  deafen(kind: Kind = 'messages'): () => void {
    const lines = this.#of(kind);
    for (const line of lines) line.loseServer();
    return () => {
      for (const line of lines) line.returnServer();
    };
  }

  /** Of one kind, or all. */
  cut(kind?: Kind): void {
    for (const line of kind ? this.#of(kind) : this.lines) line.cut();
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
  }

  #of(kind: Kind): Line[] {
    return [...this.lines].filter((line) => line.kind === kind);
  }
}
