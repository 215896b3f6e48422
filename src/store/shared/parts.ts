import type { MemoryAccounts } from '../memory/accounts.ts';
import type { Found } from '../store.ts';
import type { Counting } from './counting.ts';
import type { Engine } from './engine.ts';
import type { KeyParts } from './keys.ts';
import type { Reports } from './reports.ts';
import type { SharedSessions } from './sessions.ts';
import type { Views } from './views.ts';

export interface SharedStoreOptions extends Omit<KeyParts, 'copies'> {
  readonly engine: Engine;
  /** Bounds the copies of answers that this instance keeps, keys and bodies together. */
  readonly maxBytes: number;
  /** How long another instance's fetch is waited for at most. */
  readonly waitMs: number;
}

/** Where nobody has asked for so long, nobody knows. */
const FORGOTTEN_MS = 60_000;

/** Whether the engine answers in the time that requests give it. */
export class Waits {
  /** Questions whose answers were not waited for any longer, so far. */
  givenUp = 0;
  #isLate = false;
  #lateAt = 0;

  inTime(): void {
    this.#isLate = false;
  }

  giveUp(now: number): void {
    this.givenUp++;
    this.#isLate = true;
    this.#lateAt = now;
  }

  /** Whether the last question was answered in time, if that was not long ago. */
  isGood(now: number): boolean {
    return !this.#isLate || now - this.#lateAt > FORGOTTEN_MS;
  }
}

export interface SharedParts extends SharedStoreOptions, KeyParts {
  readonly limits: MemoryAccounts;
  readonly reports: Reports;
  readonly waits: Waits;
  readonly sessions: SharedSessions;
  readonly counting: Counting;
  /** Absent where each read asks the engine. */
  readonly views: Views | undefined;
  /** What a lookup finds while the engine does not answer. */
  away(): Found;
}
