import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const PROBE = /^\/(?:livez|readyz)\/?(?:\?|$)/;

/** Requests on one connection that have no answer yet. */
const MOST_PIPELINED = 32;

/** A client that has something to read and takes nothing for so long is cut off. */
const STALLED_MS = 30_000;

/** What a client may still send when its answer is complete, and for how long. Beyond that it is cut off. */
const MOST_DROPPED_BYTES = 5 * 1_048_576;
const DROPPED_MS = 2_000;

/**
 * How long there has to be no request before idle connections are closed: a request may be on its way. In several looks,
 * since after a stall of the process the first one is before anything is read.
 */
const QUIET_LOOKS = 10;
const LOOK_MS = 25;

const UNREAD = new Error('The body was not read before the answer was complete.');

/** An answer of a listener. Node makes one for each request. */
export class Answer extends ServerResponse {
  /** Set while its request takes room there. */
  room: Traffic | undefined = undefined;
  #onLeft: (() => void)[] | undefined;

  /** Runs it when the client leaves before the answer is whole. */
  onLeft(run: () => void): void {
    (this.#onLeft ??= []).push(run);
  }

  /** To be called when the answer is closed. */
  over(): void {
    this.leaveRoom();
    if (!this.writableFinished) for (const run of this.#onLeft ?? []) run();
  }

  /** To be called where its request is over, or only waits for a change. */
  leaveRoom(): void {
    if (this.room) this.room.underWay--;
    this.room = undefined;
  }

  /** Tells the client not to send another request on this connection. */
  closeAfter(): void {
    if (!this.headersSent) this.setHeader('Connection', 'close');
  }
}

/** What Node's own timeout of a socket looks at. It has no public name: `bytesWritten` counts a body that has just begun as written. */
type Writing = Socket & {
  readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
};

/** A connection of a client. Of its requests one is under way, and others wait for their turn. */
export class Connection {
  current: Answer | undefined;
  readonly waiting: Answer[] = [];
  /** The answer to the last request. */
  last: Answer | undefined;
  /** Bytes that the client has been sent and has not read yet. */
  unread = 0;
  /** When the client was last seen to take something, in milliseconds of `performance.now()`. */
  takenAt = 0;
  /** When the first look found that what comes is dropped. */
  #droppedSince: number | undefined;
  /** What the kernel had taken at `takenAt`. */
  #taken = 0;
  readonly #socket: Writing;
  readonly #traffic: Traffic;

  constructor(socket: Socket, traffic: Traffic) {
    this.#socket = socket;
    this.#traffic = traffic;
    // Node calls it behind the last answer, the adapter where a body takes long. Node's own resets a client that still sends.
    socket.destroySoon = () => {
      if (!this.isDropping) this.end();
    };
  }

  /** Begins the request at once, or when those before it are over. Too many of them end the connection. */
  add(answer: Answer): void {
    if (!this.#socket.writable) return; // parsed from its last bytes
    if (this.waiting.length + 1 >= MOST_PIPELINED) return void this.#socket.destroy();
    this.last = answer;
    this.#traffic.begun++;
    this.#traffic.size++;
    if (this.current) this.waiting.push(answer);
    else this.#begin(answer);
  }

  #begin(answer: Answer): void {
    this.current = answer;
    if (this.#traffic.isDraining) answer.closeAfter();
    answer.on('close', () => this.#over(answer));
    this.#traffic.handle(answer, this.#traffic);
  }

  #over(answer: Answer): void {
    answer.over();
    this.current = undefined;
    this.#traffic.size--;
    this.#count(0);
    if (!answer.req.complete || answer.req.isPaused()) this.#passOver(answer.req);
    // Behind an answer with `Connection: close`, after which Node ends the socket, nothing is begun (RFC 9112, section 9.6).
    const next = this.#socket.writable ? this.waiting.shift() : undefined;
    if (next) this.#begin(next);
  }

  /** Passes over what is left of a body that nobody reads, so that the connection can serve the next request. */
  #passOver(body: IncomingMessage): void {
    const discard = () => {
      body.removeAllListeners('data');
      if (body.listenerCount('error') > 0) body.emit('error', UNREAD); // who reads it later takes no part for the whole
      body.resume();
    };
    // Without a reader the adapter's web stream pauses the body, at each chunk.
    if (body.isPaused()) discard();
    else body.once('pause', () => process.nextTick(discard)).resume();
    if (!body.complete && this.#socket.writable) body.once('end', this.#drop());
  }

  get isDropping(): boolean {
    return this.#traffic.dropping.has(this);
  }

  /**
   * Sends no more after this, and drops what still comes until the client has closed, too. Closed at once, a reset could
   * overtake the answer (RFC 9112, section 9.6).
   */
  end(): void {
    this.#socket.end();
    if (this.isDropping) return;
    this.#socket.removeAllListeners('data').resume(); // nothing is parsed any more
    this.#drop();
  }

  /** Returns what ends it. */
  #drop(): () => void {
    let left = MOST_DROPPED_BYTES;
    const count = ({ length }: Buffer) => {
      left -= length;
      if (left < 0) this.#socket.destroy();
    };
    this.#droppedSince = undefined;
    this.#traffic.dropping.add(this);
    // One that was paused is resumed by then: with a listener for `data` Node no longer does that.
    const counting = setImmediate(() => this.#socket.on('data', count));
    return () => {
      clearImmediate(counting);
      this.#socket.off('data', count);
      this.#traffic.dropping.delete(this);
    };
  }

  /** What is done when its socket has closed. */
  close(): void {
    this.#traffic.connections.delete(this.#socket);
    this.#traffic.dropping.delete(this);
    this.#traffic.size -= this.waiting.length;
    this.#count(0);
  }

  /** Counts what is unread. Where a text is not ASCII only the kernel's queue has its bytes. */
  look(): void {
    const { writableLength, _handle: handle } = this.#socket;
    if (this.current) this.#count(Math.max(writableLength, handle?.writeQueueSize ?? 0));
  }

  #count(bytes: number): void {
    const added = bytes - this.unread;
    if (this.unread === 0 && added > 0) this.takenAt = performance.now();
    this.unread = bytes;
    if (added !== 0) this.#traffic.countUnread(added);
  }

  cutOff(): void {
    this.#count(0);
    this.#socket.destroy();
  }

  /** Cuts off a client that has something to read and has taken nothing for `STALLED_MS`, whatever it sends meanwhile. */
  sweep(now: number): void {
    if (this.isDropping) {
      this.#droppedSince ??= now;
      if (now - this.#droppedSince >= DROPPED_MS) return this.cutOff();
    }
    this.look();
    const { _handle: handle } = this.#socket;
    const taken = handle ? handle.bytesWritten - handle.writeQueueSize : 0;
    if (this.unread === 0 || taken !== this.#taken) [this.#taken, this.takenAt] = [taken, now];
    else if (now - this.takenAt >= STALLED_MS) this.cutOff();
  }
}

/** How many requests may be under way, and how much may be unread. */
type Most = Readonly<Record<'requests' | 'unreadBytes', number>>;

/** The connections of a listener, and the requests on them. It can be closed without dropping any that is under way. */
export class Traffic {
  readonly connections = new Map<Socket, Connection>();
  /** Those whose clients still send what nobody reads. */
  readonly dropping = new Set<Connection>();
  readonly handle: (answer: Answer, traffic: Traffic) => void;
  /** Requests so far, those that have no answer yet, and those of them that take room: no probes, and none that only wait. */
  begun = 0;
  size = 0;
  underWay = 0;
  /** Bytes that clients have been sent and have not read yet. */
  unreadBytes = 0;
  isDraining = false;
  readonly #most: Most;

  constructor(most: Most, handle: Traffic['handle']) {
    this.#most = most;
    this.handle = handle;
  }

  accept(socket: Socket): void {
    const connection = new Connection(socket, this);
    this.connections.set(socket, connection);
    socket.once('close', () => connection.close());
  }

  /** Whether there is room for a request, which is then taken. Probes need none. */
  enter(answer: Answer): boolean {
    if (PROBE.test(answer.req.url ?? '')) return true;
    if (this.underWay >= this.#most.requests) return false;
    this.underWay++;
    answer.room = this;
    return true;
  }

  sweep(now: number): void {
    for (const connection of this.connections.values()) connection.sweep(now);
  }

  /** Beyond the bound, cuts off the client that has taken nothing for longest, so that no other client has to wait. */
  countUnread(added: number): void {
    this.unreadBytes += added;
    if (added < 0 || this.unreadBytes <= this.#most.unreadBytes) return;
    let longest: Connection | undefined;
    for (const one of this.connections.values())
      if (one.unread > 0 && one.takenAt < (longest?.takenAt ?? Infinity)) longest = one;
    longest?.cutOff();
  }

  /** Answers from now on tell their clients to close. */
  tellToClose(): void {
    this.isDraining = true;
    for (const connection of this.connections.values()) connection.current?.closeAfter();
  }

  /** Resolves with how many are left where no request is under way and none comes any more, or the time is over. */
  async drain(graceMs: number): Promise<number> {
    const endAt = Date.now() + graceMs;
    this.tellToClose();
    for (let quiet = 0; quiet < QUIET_LOOKS && Date.now() < endAt;) {
      const before = this.begun;
      await sleep(LOOK_MS);
      quiet = this.size + this.dropping.size === 0 && this.begun === before ? quiet + 1 : 0;
    }
    return this.size;
  }
}
