import { type Account, KnownAccounts, knownNotes, type Looked, type Seen } from '../../store/account.ts';
import type { Backend, Next, Swapped } from '../../store/backend.ts';
import { MemoryBackend } from '../../store/memory.ts';
import type { Held, Note } from '../../store/note.ts';
import type { AccountId, CacheKey, Period, WindowUse } from '../../store/port.ts';
import type { Measured } from './metrics/index.ts';

/** A number that tells a note from all others. */
type Rev = number;

/** What a worker asks. `seen`: the note that it knows; 0: none. */
type Question =
  | readonly [ask: 'look', account: AccountId, seen: Rev, key?: string]
  | readonly [ask: 'swap', account: AccountId, seen: Rev, next: Next]
  | readonly [ask: 'count', account: AccountId, window: Period, many: number]
  | readonly [ask: 'accept', account: AccountId];

/** A note, without itself where the worker knows it, and the record that was asked for. */
interface Told {
  readonly rev: Rev;
  readonly note?: Note;
  readonly held?: Held | undefined;
}

/** A note that a worker knows is told by its number alone, where no record was asked for; null: nothing. */
type Answer = Rev | Told | Exclude<Swapped, 'done'> | WindowUse | null;

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

/** What all workers know of accounts; it is in the first process. */
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
    const [ask, id] = question;
    const account = notes.accounts.of(id);
    if (ask === 'count') return notes.count(account, question[2], question[3]);
    if (ask === 'accept') {
      notes.accounts.accept(account);
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

interface Known extends Seen {
  readonly seen: Rev;
}

/**
 * In a worker: asks the first process. A message costs much more than a question in it, so those that come while one is not
 * answered go together in the next.
 */
export class IpcBackend implements Backend {
  readonly isHere = false;
  readonly accounts = new KnownAccounts();
  readonly noteMs = 0; // the first process makes one anew with other versions
  readonly reliableAt = -Infinity;
  readonly now: () => number;
  readonly #send: (questions: readonly Question[]) => void;
  readonly #known = knownNotes<Known>(({ note }) => JSON.stringify(note).length);
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

  peek({ id }: Account): Seen | undefined {
    return this.#known.get(id);
  }

  look({ id }: Account, _keys?: readonly CacheKey[], key?: string): Promise<Looked> {
    const known = this.#known.get(id);
    const seen = known?.seen ?? 0;
    return this.#ask(key === undefined ? ['look', id, seen] : ['look', id, seen, key], (answer) => {
      if (known && known.seen === answer) return known;
      const { rev, note, held } = answer as Told;
      const latest = note ? this.#learn(id, rev, note) : known;
      return { ...(latest as Known), held }; // without the note: it is the one that was known
    });
  }

  swap({ id }: Account, { seen }: Seen, next: Next): Promise<Swapped> {
    return this.#ask(['swap', id, seen as Rev, next], (answer) => {
      if (typeof answer !== 'number') return answer as Swapped;
      this.#learn(id, answer, next.note);
      return 'done';
    });
  }

  count({ id }: Account, { name, lengthMs }: Period, many: number): Promise<WindowUse> {
    return this.#ask(['count', id, { name, lengthMs }, many], (answer) => answer as WindowUse);
  }

  accept({ id }: Account): void {
    void this.#ask(['accept', id], ignored);
  }

  #learn(id: AccountId, seen: Rev, note: Note): Known {
    const known = { note, seen, token: '' };
    this.#known.set(id, known);
    return known;
  }

  #ask<T>(question: Question, made: (answer: Answer) => T): Promise<T> {
    return new Promise((resolve) => {
      this.#listeners.push((answer) => resolve(made(answer)));
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

/** Called in a worker. What cannot be sent was for a process that has ended, and this one ends too. */
export const tellFirst = (said: FromWorker): void => void process.send?.(said, undefined, {}, ignored);

let ofFirst: IpcBackend | undefined;

/** What this worker asks the process that has started it. All gateways of a process share it: answers come in the order of questions. */
export function notesOfFirst(now: () => number): Backend {
  if (ofFirst) return ofFirst;
  const backend = new IpcBackend({ now, send: (questions) => tellFirst({ questions }) });
  process.on('message', ({ answers }: ToWorker) => answers && backend.hear(answers));
  return (ofFirst = backend);
}
