import type { Backend, Count, Looked, Next, Seen, Swapped } from '../../store/backend.ts';
import { LRUCache, recent } from '../../store/bounded.ts';
import { MemoryBackend } from '../../store/memory.ts';
import type { Held, Note } from '../../store/note.ts';
import type { AccountId, CacheKey, Window } from '../../store/port.ts';
import type { Measured } from './metrics/index.ts';

/** A number that tells a note from all others. */
type Rev = number;

/** What a worker asks. `seen`: the note that it knows; 0: none. */
type Question =
  | readonly [ask: 'look', account: AccountId, seen: Rev, key?: string]
  | readonly [ask: 'swap', account: AccountId, seen: Rev, next: Next]
  | readonly [ask: 'count', account: AccountId, window: Pick<Window, 'name' | 'lengthMs'>, many: number]
  | readonly [ask: 'accept', account: AccountId];

/** A note, without itself where the worker knows it, and the record that was asked for. */
interface Told {
  readonly rev: Rev;
  readonly note?: Note;
  readonly held?: Held | undefined;
}

/** A note that a worker knows is told by its number alone, where no record was asked for; null: nothing. */
type Answer = Rev | Told | Exclude<Swapped, 'done'> | Count | null;

/** What a worker says: each message has one of these. */
export interface FromWorker {
  readonly questions?: readonly Question[];
  /** Whether it takes requests. */
  readonly isReady?: boolean;
  readonly measured?: Measured;
}

export interface ToWorker {
  /** The answers to the questions of the last message. */
  readonly answers?: readonly Answer[];
  readonly measure?: true;
}

/** In the first process: what all workers know of accounts. */
export class NotesOfWorkers {
  readonly #notes: MemoryBackend;
  readonly #revs = new WeakMap<Note, Rev>();
  #lastRev = 0;

  constructor(now: () => number) {
    this.#notes = new MemoryBackend({ now });
  }

  answers(questions: readonly Question[]): Answer[] {
    return questions.map((question) => this.#answer(question));
  }

  #answer(question: Question): Answer {
    const notes = this.#notes;
    const [ask, account] = question;
    if (ask === 'count') return notes.count(account, question[2], question[3]);
    if (ask === 'accept') {
      notes.accept(account);
      return null;
    }
    if (ask === 'look') {
      const [, , known, key] = question;
      const { note, held } = notes.look(account, undefined, key);
      const rev = this.#revOf(note);
      if (known !== rev) return { rev, note, held };
      return key === undefined ? rev : { rev, held };
    }
    const [, , seen, next] = question;
    const now = notes.peek(account);
    const swapped = this.#revOf(now.note) === seen ? notes.swap(account, now, next) : 'other';
    return swapped === 'done' ? this.#revOf(next.note) : swapped;
  }

  #revOf(note: Note): Rev {
    const known = this.#revs.get(note);
    if (known !== undefined) return known;
    this.#revs.set(note, ++this.#lastRev);
    return this.#lastRev;
  }
}

/** How much a worker keeps of the notes that it has seen. */
const MAX_KNOWN_BYTES = 33_554_432;
const KNOWN_BYTES = 600;
const MOST_ACCEPTED = 50_000;

interface Known extends Seen {
  readonly seen: Rev;
}

/**
 * In a worker: asks the first process. A message costs much more than a question in it, so those that come while one is not
 * answered go together in the next.
 */
export class IpcBackend implements Backend {
  readonly isHere = false;
  readonly noteMs = 0; // the first process makes one anew with other versions
  readonly reliableAt = -Infinity;
  readonly now: () => number;
  readonly #send: (questions: readonly Question[]) => void;
  readonly #known = new LRUCache<AccountId, Known>({
    maxSize: MAX_KNOWN_BYTES,
    sizeCalculation: ({ note }) => KNOWN_BYTES + JSON.stringify(note).length,
  });
  /** Accounts that the first process has been told of. */
  readonly #accepted = recent<AccountId, true>(MOST_ACCEPTED);
  #questions: Question[] = [];
  #listeners: ((answer: Answer) => void)[] = [];
  /** The listeners of the message that is not answered yet. */
  #asked: ((answer: Answer) => void)[] | undefined;

  /** `send`: the answers to all of its questions come to `hear`. */
  constructor({ now, send }: Pick<IpcBackend, 'now'> & { send: (questions: readonly Question[]) => void }) {
    this.now = now;
    this.#send = send;
  }

  hear(answers: readonly Answer[]): void {
    const listeners = this.#asked ?? [];
    this.#asked = undefined;
    for (const [i, answer] of answers.entries()) listeners[i]?.(answer);
    this.#flush();
  }

  peek(account: AccountId): Seen | undefined {
    return this.#known.get(account);
  }

  async look(account: AccountId, _keys?: readonly CacheKey[], key?: string): Promise<Looked> {
    const known = this.#known.get(account);
    const seen = known?.seen ?? 0;
    const answer = await this.#ask(key === undefined ? ['look', account, seen] : ['look', account, seen, key]);
    if (known && known.seen === answer) return known;
    const { rev, note, held } = answer as Told;
    const latest = note ? this.#learn(account, rev, note) : known;
    return { ...(latest as Known), held }; // without the note: it is the one that was known
  }

  async swap(account: AccountId, { seen }: Seen, next: Next): Promise<Swapped> {
    const answer = await this.#ask(['swap', account, seen as Rev, next]);
    if (typeof answer !== 'number') return answer as Swapped;
    this.#learn(account, answer, next.note);
    return 'done';
  }

  async count(account: AccountId, { name, lengthMs }: Pick<Window, 'name' | 'lengthMs'>, many: number) {
    this.#accepted.delete(account); // it may have been forgotten there since
    return (await this.#ask(['count', account, { name, lengthMs }, many])) as Count;
  }

  accept(account: AccountId): void {
    if (this.#accepted.has(account)) return;
    this.#accepted.set(account, true);
    void this.#ask(['accept', account]);
  }

  #learn(account: AccountId, seen: Rev, note: Note): Known {
    const known = { note, seen, token: '' };
    this.#known.set(account, known);
    this.#accepted.delete(account);
    return known;
  }

  #ask(question: Question): Promise<Answer> {
    return new Promise((resolve) => {
      this.#listeners.push(resolve);
      if (this.#questions.push(question) === 1) setImmediate(this.#flush);
    });
  }

  #flush = (): void => {
    if (this.#asked || this.#questions.length === 0) return;
    const questions = this.#questions;
    this.#asked = this.#listeners;
    [this.#questions, this.#listeners] = [[], []];
    this.#send(questions);
  };
}

export const ignored = (): undefined => undefined;

/** In a worker. What cannot be sent was for a process that has ended, and so does this one. */
export const tellFirst = (said: FromWorker): void => void process.send?.(said, undefined, {}, ignored);

let ofFirst: IpcBackend | undefined;

/** What this worker asks the process that has started it. All gateways of a process share it: answers come in the order of questions. */
export function notesOfFirst(now: () => number): Backend {
  if (ofFirst) return ofFirst;
  const backend = new IpcBackend({ now, send: (questions) => tellFirst({ questions }) });
  process.on('message', ({ answers }: ToWorker) => answers && backend.hear(answers));
  return (ofFirst = backend);
}
