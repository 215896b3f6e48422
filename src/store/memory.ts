import { MemoryAnswers } from './memory/answers.ts';
import { MemoryLimits } from './memory/limits.ts';
import { MemoryRecords } from './memory/records.ts';
import type { Arrival, Store, Usage, Visit } from './store.ts';

/** The store of one process: everything in bounded maps, gone when it ends. */
export class MemoryStore implements Store {
  readonly answers: MemoryAnswers;
  readonly records = new MemoryRecords();
  readonly limits = new MemoryLimits();

  /** `maxBytes` bounds the keys and bodies of cached answers together. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.answers = new MemoryAnswers({ maxBytes });
  }

  visit({ account, now, window }: Arrival): Visit {
    return { use: window && this.limits.take({ account, now, ...window }), known: this.answers };
  }

  usage(): Usage {
    return { ...this.answers.usage(), ...this.records.usage(), ...this.limits.usage() };
  }
}
