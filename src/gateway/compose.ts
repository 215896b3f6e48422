import type { ReadResult } from '../cache/read.ts';
import { Abortable } from '../core/abortable.ts';
import { GatewayError } from '../core/errors.ts';
import type { ClientRequest } from '../core/request.ts';
import { whenDone, type MaybePromise } from '../core/runtime.ts';
import type { Entry } from '../store/port.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { withOrigin } from '../upstream/links.ts';
import type { Read } from '../upstream/read.ts';
import { isRefusal } from './admission.ts';
import type { Gateway } from './gateway.ts';
import { COMPUTED } from './overview.ts';
import type { Composition, DependsOn, SectionRead, Values } from './plan.ts';

/** A section as it is answered, in the terms of `meta.sections`. */
export interface SectionResult {
  readonly name: string;
  readonly state: 'fresh' | 'stale' | 'failed' | 'skipped' | 'not_applicable';
  /** JSON, value for value the upstream's; undefined where there is no data. */
  readonly text: string | undefined;
  /** The copy or answer that the text comes from. */
  readonly entry: Entry | undefined;
  /** Whether copies of it may be kept at all. */
  readonly isCacheable: boolean;
  /** Strong validator of the text, quoted; empty if none has been made yet. */
  readonly etag: string;
  /** Seconds since the upstream gave or confirmed it. */
  readonly age: number;
  /** For how many seconds the copy stays fresh, negative if it is stale; undefined if the upstream was asked. */
  readonly ttl: number | undefined;
  /** For a stale copy: the code of the failure for which there is no newer one. */
  readonly code: string | undefined;
  /** Why the section failed, or the one that it depends on. */
  readonly error: GatewayError | undefined;
  /** How long it took, in milliseconds. */
  readonly ms: number;
}

const WITHOUT_DATA = {
  text: undefined,
  entry: undefined,
  isCacheable: true,
  etag: '',
  age: 0,
  ttl: undefined,
  code: undefined,
  error: undefined,
  ms: 0,
} as const;

/** The sections whose failure fails the whole. */
export function requiredSections({ overview, wanted, strict }: Composition): string[] {
  return wanted.filter((name) => strict || overview.sections[name]?.required);
}

/**
 * Answers each section from a fresh copy, or starts its read, all at once. The results are in the order of `composedNames`.
 * One rejects only with what fails the whole overview.
 */
export const compose = (
  gateway: Gateway,
  request: ClientRequest,
  snapshot: Snapshot,
  composition: Composition,
): MaybePromise<SectionResult>[] => [...new Composer(gateway, request, snapshot, composition).results.values()];

/** The names of all sections that are composed: those that are wanted, and those that they depend on. */
export const composedNames = ({ reads, wanted }: Composition): string[] => [
  ...reads.map(({ name }) => name),
  ...wanted.filter((name) => name === COMPUTED),
];

class Composer {
  readonly results = new Map<string, MaybePromise<SectionResult>>();
  readonly #gateway: Gateway;
  readonly #request: ClientRequest;
  readonly #snapshot: Snapshot;
  readonly #composition: Composition;
  #abortable: Abortable | undefined;

  constructor(gateway: Gateway, request: ClientRequest, snapshot: Snapshot, composition: Composition) {
    this.#gateway = gateway;
    this.#request = request;
    this.#snapshot = snapshot;
    this.#composition = composition;
    for (const read of composition.reads) {
      const { name, dependsOn } = read;
      if (dependsOn) this.#add(name, this.#dependent(read, dependsOn));
      else if (read.read) this.#add(name, this.#read(name, read.read));
    }
    if (composition.wanted.includes(COMPUTED)) this.#add(COMPUTED, this.#computed());
  }

  /** Ends all reads. Made on first use: an answer from fresh copies never needs it. */
  get abortable(): Abortable {
    return (this.#abortable ??= this.#request.abortable.child());
  }

  #add(name: string, result: MaybePromise<SectionResult>): void {
    if (!(result instanceof Promise) && !result.error) return void this.results.set(name, result);
    const checked = Promise.resolve(result).then((done) => this.#checked(name, done));
    // The other reads end too, so that a refused account does not cost four calls.
    checked.catch((error: unknown) => this.abortable.abort(error));
    this.results.set(name, checked);
  }

  /** @throws GatewayError what fails the whole, with the name of the section that failed first */
  #checked(name: string, result: SectionResult): SectionResult {
    const { error } = result;
    if (error && (isRefusal(error) || requiredSections(this.#composition).includes(name)))
      throw error.with({ section: error.particulars.section ?? name });
    return result;
  }

  #read(name: string, read: Read): MaybePromise<SectionResult> {
    return this.#fresh(name, read) ?? this.#timed(name, () => this.#ask(name, read, this.abortable));
  }

  #fresh(name: string, read: Read): SectionResult | undefined {
    const result = this.#gateway.fresh(read, this.#request, this.#snapshot);
    return result && resultOf(name, result, this.#request);
  }

  async #ask(name: string, read: Read, abortable: Abortable): Promise<SectionResult> {
    const result = await this.#gateway.read(read, this.#request, this.#snapshot, { leg: name, abortable });
    return resultOf(name, result, this.#request);
  }

  /** Makes a result of a refusal or failure, and notes how long the section took. @throws ClientLeft; a fault of ours */
  async #timed(name: string, make: () => Promise<SectionResult>): Promise<SectionResult> {
    const { clock } = this.#gateway.deps;
    const startedAt = clock.now();
    const result = await make().catch((error: unknown): SectionResult => {
      if (error instanceof GatewayError) return { ...WITHOUT_DATA, name, state: 'failed', error };
      throw error;
    });
    return { ...result, ms: clock.now() - startedAt };
  }

  /** A section that takes something from another one, its base. At once if fresh copies have both. */
  #dependent(read: SectionRead, dependsOn: DependsOn): MaybePromise<SectionResult> {
    const { name } = read;
    const base = this.results.get(dependsOn.section);
    if (!base) throw new Error('a section has to come after what it depends on');
    if (base instanceof Promise || !base.entry) return this.#waiting(read, dependsOn, base);
    const values = dependsOn.valuesIn(base.entry);
    if (values === null) return notApplicable(name);
    if (!dependsOn.areUsable(values)) return this.#waiting(read, dependsOn, base);
    const page = read.list && this.#fresh(name, read.list);
    const item = page && itemIn(page, dependsOn, values);
    return item ?? this.#fresh(name, read.readWith(values)) ?? this.#waiting(read, dependsOn, base, page);
  }

  /**
   * Reads the page in which the item may be at the same time as the base, unless there is a fresh copy of the page. If the
   * page failed, or does not have the item, the item is read by its id.
   */
  #waiting(
    read: SectionRead,
    dependsOn: DependsOn,
    base: MaybePromise<SectionResult>,
    freshPage?: SectionResult,
  ): Promise<SectionResult> {
    const { name } = read;
    return this.#timed(name, async () => {
      const abortable = this.abortable.child();
      const reading = freshPage ?? this.#page(read, dependsOn, abortable);
      let isRead = false;
      try {
        // If the page is refused with 401 or 403, the base is not waited for. Once the page is there, the time until the base
        // is there is a phase of this section.
        const based = Promise.resolve(reading).then(() => this.#request.during('joined', base, name));
        const done = await Promise.race([base, based]);
        if (done.error) return { ...WITHOUT_DATA, name, state: 'skipped', error: done.error };
        const values = done.entry ? dependsOn.valuesIn(done.entry) : null;
        if (values === null) return notApplicable(name);
        if (!dependsOn.areUsable(values)) throw unusable(`\`${dependsOn.section}\` names no usable id.`);
        const page = await reading;
        isRead = true;
        return (page && itemIn(page, dependsOn, values)) ?? (await this.#read(name, read.readWith(values)));
      } finally {
        if (!isRead) abortable.abort(new Error('the page is no longer needed'));
      }
    });
  }

  /**
   * The page in which the item may be. Undefined if there is no such page, if it failed, or if the last copy of the base
   * names no id: then the page is hardly ever needed.
   * @throws GatewayError if the account is refused
   */
  async #page(
    { name, list }: SectionRead,
    dependsOn: DependsOn,
    abortable: Abortable,
  ): Promise<SectionResult | undefined> {
    const base = this.#composition.reads.find((one) => one.name === dependsOn.section)?.read;
    const copy = base && this.#snapshot.copy(base);
    if (!list || (copy && dependsOn.valuesIn(copy) === null)) return undefined;
    const page = this.#fresh(name, list) ?? (await this.#timed(name, () => this.#ask(name, list, abortable)));
    if (page.error && isRefusal(page.error)) throw page.error;
    return page.error ? undefined : page;
  }

  /** The section `computed`, at once if its inputs are there. */
  #computed(): MaybePromise<SectionResult> {
    const { reads, wanted } = this.#composition;
    const inputs = reads.flatMap(({ name, required }) => {
      const result = required || wanted.includes(name) ? this.results.get(name) : undefined;
      return result ? [result] : [];
    });
    return whenDone(allOf(inputs), (all) => this.#compute(all));
  }

  /** Calls the overview's function, unless a required section failed. If it throws or returns no JSON, `computed` has failed. */
  #compute(inputs: readonly SectionResult[]): SectionResult {
    const { clock } = this.#gateway.deps;
    const { sections, compute } = this.#composition.overview;
    const bad = inputs.find(({ name, error }) => sections[name]?.required && error);
    if (bad) return { ...WITHOUT_DATA, name: COMPUTED, state: 'skipped', error: bad.error };
    const startedAt = clock.now();
    const texts = new Map(inputs.map(({ name, text }) => [name, text]));
    const values = Object.keys(sections).map((name) => [name, JSON.parse(texts.get(name) ?? 'null')] as const);
    try {
      const made: unknown = compute?.(Object.fromEntries(values));
      if (made instanceof Promise) made.catch(() => undefined); // its failure would end the process
      const text = made instanceof Promise ? undefined : (JSON.stringify(made) as string | undefined);
      if (text === undefined) throw new TypeError('what is computed is no JSON');
      return { ...madeOf(inputs.filter((one) => one.text !== undefined)), text, ms: clock.now() - startedAt };
    } catch (cause) {
      const error = GatewayError.of('internal_error', { cause });
      return { ...WITHOUT_DATA, name: COMPUTED, state: 'failed', error, ms: clock.now() - startedAt };
    }
  }
}

/** All values; a promise only if one of them is a promise. */
export const allOf = <T>(values: readonly MaybePromise<T>[]): MaybePromise<readonly T[]> =>
  values.some((value) => value instanceof Promise) ? Promise.all(values) : (values as readonly T[]);

/** @throws GatewayError `upstream_bad_response` if the upstream answered without a body */
function resultOf(name: string, reading: ReadResult, request: { readonly origin: string }): SectionResult {
  const { entry, age, ttl, code, isCacheable } = reading;
  if (entry === null) throw unusable('The upstream answered without a body.');
  const state = ttl !== undefined && ttl < 0 ? 'stale' : 'fresh';
  const text = withOrigin(entry, request);
  return { name, state, text, entry, isCacheable, etag: entry.etag, age, ttl, code, error: undefined, ms: 0 };
}

const notApplicable = (name: string): SectionResult => ({ ...WITHOUT_DATA, name, state: 'not_applicable' });

const unusable = (detail: string) => GatewayError.of('upstream_bad_response', { detail });

/** The result for the item with the id among these values, cut out of a page. Undefined if the page does not have it. */
function itemIn(page: SectionResult, dependsOn: DependsOn, values: Values): SectionResult | undefined {
  const text = page.entry && dependsOn.itemIn(page.entry, values);
  return text === undefined ? undefined : { ...page, text, etag: '' };
}

/** What `computed` has of its inputs: the age of the oldest, and kept only if all may be kept. */
const madeOf = (inputs: readonly SectionResult[]) => ({
  ...WITHOUT_DATA,
  name: COMPUTED,
  state: inputs.some(({ state }) => state === 'stale') ? ('stale' as const) : ('fresh' as const),
  age: Math.max(0, ...inputs.map(({ age }) => age)),
  ttl: inputs.some(({ ttl }) => ttl === undefined) ? undefined : Math.min(...inputs.map(({ ttl = 0 }) => ttl)),
  code: inputs.find(({ code }) => code !== undefined)?.code,
  isCacheable: inputs.every(({ isCacheable }) => isCacheable),
});
