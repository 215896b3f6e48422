import type { Redis } from 'ioredis';
import type { StoreAddress } from '../../../core/store-address.ts';
import { Changes, type Numbered, type Sent } from '../../../store/shared/changes.ts';
import { channelOf, clientOf } from './client.ts';

interface ChannelOptions {
  readonly address: StoreAddress;
  /** Asks the store the smallest question. */
  readonly beat: () => Promise<unknown>;
  /** The store does not let this user subscribe, or a proxy does not know how. */
  readonly onRefused: () => void;
}

/** Of another try to subscribe where that is refused. */
const AGAIN_MS = 60_000;
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
  #reopenedAt = 0;
  #reopenMs = REOPEN_MS;
  #isRefused = false;
  #isClosed = false;

  constructor(options: ChannelOptions) {
    // There is none for a cluster. At a primary that is one no more, messages will be missing.
    const client = clientOf(options.address, false) as Redis;
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
      this.#isRefused = false;
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'ReplyError') return; // it was closed meanwhile
      if (!this.#isRefused) onRefused();
      this.#isRefused = true;
      clearTimeout(this.#again);
      this.#again = setTimeout(() => void this.#subscribe(), AGAIN_MS).unref();
    }
  }

  #hear(message: string): void {
    const [number, token = '', account = ''] = message.split(' ');
    if (account === '') return;
    this.#reopenMs = REOPEN_MS;
    this.changes.heard({ number: Number(number), token, account });
  }

  #beatIn(ms: number): void {
    this.#next = setTimeout(() => {
      const { changes } = this;
      const isBusy = changes.uses * 1000 > FEW * ms;
      changes.uses = 0;
      if (performance.now() - this.#askedAt >= BEAT_MS / 2) this.#options.beat().catch(() => undefined);
      this.#beatIn(isBusy ? BEAT_MS : IDLE_MS);
    }, ms).unref();
  }
}
