import { MemoryAnswers } from './memory/answers.ts';
import { MemoryLimits } from './memory/limits.ts';
import { Marks } from './memory/marks.ts';
import { MemoryRecords } from './memory/records.ts';
import {
  type Arrival,
  type Found,
  foundNowhere,
  type Known,
  type NewWrite,
  type Store,
  type Usage,
  type Visit,
  type WriteEnd,
  type WriteRecord,
} from './store.ts';

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
    const use = window && this.limits.take({ account, now, ...window });
    return { use, known: this.#marks.isEmpty ? this.answers : this.#knownToOne() };
  }

  beginWrite(write: NewWrite): WriteRecord | undefined {
    const { record, purchase, tags } = write;
    const known = record && this.records.peek(record);
    if (known) return known;
    const equal = this.#marks.equalTo(write);
    if (equal) return { fingerprint: purchase ?? '', outcome: equal };
    const isMarked = tags.length > 0 || purchase !== undefined;
    if (isMarked) this.#marks.assertRoom(write);
    if (record) this.records.claim(record);
    if (isMarked) this.#marks.add(write);
    return undefined;
  }

  /** Copies lose their worth only now: until then the mark hides them, and what was not sent gives them back. */
  endWrite(write: NewWrite, end: WriteEnd): void {
    const { principal, tags, record } = write;
    if (end !== 'not_sent' && tags.length > 0) this.answers.touch(principal, tags);
    if (end === 'unknown') this.#marks.leave(write);
    else this.#marks.remove(write);
    if (!record) return;
    if (end === 'refused' || end === 'not_sent') this.records.release(record);
    else this.records.settle(record, end);
  }

  /** Under a mark equal reads of one request share a call, and no others. */
  #knownToOne(): Known {
    let hidden: Found | undefined;
    return {
      lookup: (place, now) =>
        this.#marks.covers(place.account, place.tags, now ?? -Infinity)
          ? (hidden ??= foundNowhere())
          : this.answers.lookup(place, now),
    };
  }

  usage(): Usage {
    return { ...this.answers.usage(), ...this.records.usage(), ...this.limits.usage() };
  }
}
