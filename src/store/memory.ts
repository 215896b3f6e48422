import { MemoryAnswers } from './memory/answers.ts';
import { MemoryLimits } from './memory/limits.ts';
import { Marks } from './memory/marks.ts';
import { MemoryRecords } from './memory/records.ts';
import type { Arrival, NewWrite, Store, Usage, Visit, WriteEnd, WriteRecord } from './store.ts';

/** The store of one process: everything in bounded maps, gone when it ends. */
export class MemoryStore implements Store {
  readonly answers: MemoryAnswers;
  readonly records = new MemoryRecords();
  readonly limits = new MemoryLimits();
  readonly #marks = new Marks();

  /** `maxBytes` bounds the keys and bodies of cached answers together. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.answers = new MemoryAnswers({ maxBytes, marks: this.#marks });
  }

  visit({ account, now, window }: Arrival): Visit {
    return { use: window && this.limits.take({ account, now, ...window }), known: this.answers };
  }

  beginWrite(write: NewWrite): WriteRecord | undefined {
    const { principal, record, purchase, tags, now } = write;
    const known = record && this.records.peek(record);
    if (known) return known;
    const equal = this.#marks.equalTo(write);
    if (equal) return { fingerprint: purchase ?? '', outcome: equal };
    this.#marks.assertRoom(now);
    if (record) this.records.claim(record);
    if (tags.length > 0 || purchase !== undefined) this.#marks.add(write, this.answers.supersede(principal, tags));
    return undefined;
  }

  endWrite(write: NewWrite, end: WriteEnd): void {
    const { record } = write;
    if (end === 'unknown') this.#marks.leave(write);
    else if (end === 'not_sent') this.#marks.remove(write)?.restore?.();
    else this.#marks.remove(write);
    if (!record) return;
    if (end === 'refused' || end === 'not_sent') this.records.release(record);
    else this.records.settle(record, end);
  }

  usage(): Usage {
    return { ...this.answers.usage(), ...this.records.usage(), ...this.limits.usage() };
  }
}
