import type { Redis } from 'ioredis';
import { Changes, type Numbered, type Sent } from '../../../store/shared/changes.ts';
import { channelOf, clientOf, pauseOf, type StoreAddress } from './client.ts';

interface ChannelOptions {
  readonly address: StoreAddress;
  /** Asks the store the smallest question. */
  readonly beat: () => Promise<unknown>;
  /** The store does not let this user subscribe, or a proxy does not know how. */
  readonly onRefused: () => void;
  /** Changes never came. */
  readonly onLost: () => void;
}

/** Of another try to subscribe where that is refused. */
const AGAIN_MS = 60_000;
/** So many failed attempts to subscribe are taken for a refusal. */
const REFUSED = 5;
/** Between questions while there are hits, and while there are few. */
const BEAT_MS = 50;
const IDLE_MS = 1_000;
/** Hits a second. With fewer, those that ask are enough. */
const FEW = 30;
/** How soon after the last time the channel is opened again because messages were lost; longer where that did not help. */
const REOPEN_MS = 1_000;

/** Hears of changes over a connection of its own, and asks often enough to know that it has heard of all. */
export class Channel {
  readonly changes = new Changes({ now: () => performance.now(), wall: () => Date.now() });
  readonly #client: Redis;
  readonly #options: ChannelOptions;
  #again: NodeJS.Timeout | undefined;
  #next: NodeJS.Timeout | undefined;
  #askedAt = 0;
  /** Hits a second, about. */
  #rate = 0;
  #reopenedAt = 0;
  #reopenMs = REOPEN_MS;
  /** Attempts to subscribe that failed since the last one that did not. */
  #failures = 0;
  #isClosed = false;

  constructor(options: ChannelOptions) {
    // There is none for a cluster. At a primary that is one no more, messages will be missing.
    const client = clientOf(options.address, (times) => this.#pauseOf(times), false) as Redis;
    this.#client = client;
    this.#options = options;
    client.on('ready', () => void this.#subscribe());
    client.on('message', (_name, message) => this.#hear(message));
    client.on('close', () => this.changes.closed());
    client.on('error', () => undefined); // the connection of the questions tells of it
    client.on('end', () => this.#connect());
    this.#connect();
    this.#beatIn(IDLE_MS);
  }

  /** A question is sent. */
  sent(): Sent {
    const sent = this.changes.sent();
    this.#askedAt = sent.at;
    return sent;
  }

  answered(numbered: Numbered, sent: Sent): void {
    const isLost = this.changes.answered(numbered, sent);
    if (isLost) this.#options.onLost();
    if (!isLost || sent.at - this.#reopenedAt < this.#reopenMs) return;
    this.#reopenedAt = sent.at;
    this.#reopenMs = Math.min(2 * this.#reopenMs, AGAIN_MS);
    this.#client.disconnect(true);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#again);
    clearTimeout(this.#next);
    this.#client.disconnect();
  }

  #connect(): void {
    if (!this.#isClosed) this.#client.connect().catch(() => undefined);
  }

  async #subscribe(): Promise<void> {
    const { address, onRefused } = this.#options;
    try {
      await this.#client.subscribe(channelOf(address));
      this.changes.opened();
      this.#failures = 0;
    } catch (error) {
      const isClosed = !(error instanceof Error) || error.name !== 'ReplyError';
      this.#failures = Math.max(this.#failures + 1, isClosed ? 0 : REFUSED);
      if (this.#failures === REFUSED) onRefused();
      if (isClosed) return;
      clearTimeout(this.#again);
      this.#again = setTimeout(() => void this.#subscribe(), AGAIN_MS).unref();
    }
  }

  /** A proxy may close each connection on which somebody subscribes. */
  #pauseOf(times: number): number {
    return Math.max(pauseOf(times), this.#failures > 1 ? Math.min(10 * 2 ** this.#failures, AGAIN_MS) : 0);
  }

  #hear(message: string): void {
    const [number, token = '', account = ''] = message.split(' ');
    const isNews = account !== '' && this.changes.heard({ number: Number(number), token, account });
    if (isNews) this.#reopenMs = REOPEN_MS;
  }

  #beatIn(ms: number): void {
    this.#next = setTimeout(() => {
      const { changes } = this;
      this.#rate = this.#rate * Math.max(0, 1 - ms / IDLE_MS) + changes.uses;
      changes.uses = 0;
      if (performance.now() - this.#askedAt >= BEAT_MS / 2) this.#options.beat().catch(() => undefined);
      this.#beatIn(this.#rate > FEW ? BEAT_MS : IDLE_MS);
    }, ms).unref();
  }
}
