import type { Clock } from '../../core/runtime.ts';
import {
  type AccountId,
  type Answers,
  type Entry,
  type Found,
  foundNowhere,
  isFromNowhere,
  type Place,
  type Tag,
  type Versions,
} from '../store.ts';
import type { Copies } from './copies.ts';
import { type Face, facesOf, keyTag, type NamedPlace, namedPlace, namedTags } from './face.ts';
import {
  MAX_VALUE_BYTES,
  type PlaceQuestion,
  type PlaceReply,
  type Question,
  type Remote,
  type Reply,
} from './remote.ts';
import { decodeEntry, encodeEntry } from './sealed-entry.ts';
import type { Untold } from './untold.ts';
import type { Vault } from './vault.ts';

export interface AnswersOptions {
  readonly remote: Remote;
  readonly vault: Vault;
  readonly copies: Copies;
  readonly untold: Untold;
  readonly clock: Clock;
  /** What is found of a place that a write of this instance touches just now. */
  readonly marked: (place: Place, now: number | undefined) => Found | undefined;
}

/** How long a write that is over waits for its touch to be heard. */
const PATIENCE_MS = 500;
const TRY_AGAIN_MS = 20;

interface Inquiry {
  readonly account: AccountId;
  readonly places: readonly Place[];
  readonly window?: Question['window'];
}

interface Known extends Pick<Reply, 'use' | 'heldMs'> {
  /** In the order asked. */
  readonly found: readonly Found[];
}

interface Batch {
  readonly places: Place[];
  /** Nothing where the engine does not answer. */
  readonly found: Promise<readonly Found[]>;
}

/** Versions of each face of an account, joined; a token of an engine holds no such sign. */
const JOINT = '/';
/** Cached answers that instances share; each instance keeps copies, and asks whether they still hold. */
export class SharedAnswers implements Answers {
  readonly #of: AnswersOptions;
  /** By this instance, of any account. */
  #touches = 0;
  /** Lookups of this moment. */
  readonly #batches = new Map<AccountId, Batch>();

  constructor(options: AnswersOptions) {
    this.#of = options;
  }

  /** One round trip for all that are looked up at the same moment. */
  async lookup(place: Place, now?: number): Promise<Found> {
    const marked = this.#of.marked(place, now);
    if (marked) return marked;
    const open = this.#batches.get(place.account) ?? this.#openBatch(place.account);
    const index = open.places.push(place) - 1;
    return (await open.found)[index] ?? this.away();
  }

  /**
   * What the engine knows of places of one account, and of a window that this is to be counted in.
   * @throws whatever the engine fails with
   */
  async ask({ account, places, window }: Inquiry): Promise<Known> {
    const { remote, vault, untold } = this.#of;
    await untold.tell(account);
    const faces = facesOf(account, vault);
    const replies = await Promise.all(
      faces.map(async (face) => {
        const asked = await Promise.all(places.map((place) => this.#question(face, place)));
        return remote.visit(face.account, { places: asked, window: face.index === 0 ? window : undefined });
      }),
    );
    const found = await Promise.all(
      places.map((place, i) =>
        this.#found(
          place,
          replies.map((reply) => reply.places[i]),
        ),
      ),
    );
    return { found, use: replies[0]?.use, heldMs: replies[0]?.heldMs ?? 0 };
  }

  /** What is found while the engine does not answer: equal reads share a call until this instance writes. */
  away(): Found {
    return foundNowhere(`away ${this.#touches}`);
  }

  #openBatch(account: AccountId): Batch {
    const places: Place[] = [];
    const found = Promise.resolve()
      .then(() => {
        this.#batches.delete(account);
        return this.ask({ account, places });
      })
      .then(
        (known) => known.found,
        () => [],
      );
    const batch = { places, found };
    this.#batches.set(account, batch);
    return batch;
  }

  /** What to ask about a place under one face of its account. Values are kept under the first alone. */
  async #question(face: Face, place: Place): Promise<PlaceQuestion> {
    const copy = face.index === 0 ? this.#of.copies.get(place) : undefined;
    const have = copy && { versions: copy.versions.split(JOINT, 1)[0] ?? '', askedAt: copy.entry.askedAt };
    return { ...(await namedPlace(face, place)), have };
  }

  /** What the engine's replies, one for each face, say of a place. */
  async #found(place: Place, replies: readonly (PlaceReply | undefined)[]): Promise<Found> {
    const { clock, remote } = this.#of;
    const isDoubtful = remote.isWhole?.() === false;
    const versions = replies.map((reply) => reply?.versions ?? '').join(JOINT);
    const value = replies[0]?.value;
    const opened = value && (await this.#open(place, value, versions));
    if (opened) {
      // Clocks differ: it cannot be younger than its time in the engine.
      const storedAt = Math.min(opened.storedAt, clock.now() - (replies[0]?.ageMs ?? 0));
      const entry = { ...opened, storedAt };
      this.#keepHere(place, entry, versions);
      return { entry, versions, isDoubtful };
    }
    const copy = this.#of.copies.get(place);
    return { entry: copy?.versions === versions ? copy.entry : undefined, versions, isDoubtful };
  }

  async save(place: Place, entry: Entry, versions: Versions): Promise<boolean> {
    const { remote, vault, untold } = this.#of;
    const [face] = facesOf(place.account, vault);
    if (isFromNowhere(versions) || !face) return false;
    try {
      await untold.tell(place.account);
      const { key, tags } = await namedPlace(face, place);
      const [first = '', ...others] = versions.split(JOINT);
      const value = await vault.seal(seat(face, key), encodeEntry(entry, others.join(JOINT)));
      if (value.length > MAX_VALUE_BYTES) return this.#keepHere(place, entry, versions);
      const lifeMs = Math.max(1, Math.ceil(entry.expiresAt - entry.storedAt));
      const isKept = await remote.save(face.account, {
        key,
        tags,
        versions: first,
        askedAt: entry.askedAt,
        value,
        lifeMs,
      });
      return isKept && this.#keepHere(place, entry, versions);
    } catch {
      return false;
    }
  }

  async drop(place: Place): Promise<void> {
    this.#of.copies.delete(place);
    await this.touch(place.account, [keyTag(place.key)]);
  }

  /** Never rejects: what the engine does not hear is kept, and told before it is used again. */
  async touch(account: AccountId, tags: readonly Tag[], isPatient = false): Promise<void> {
    const { untold, remote, clock } = this.#of;
    if (tags.length === 0) return;
    this.#touches++;
    untold.keepTags(account, tags);
    const state = () => remote.state?.() ?? 'there';
    if (state() === 'gone' || (state() === 'silent' && !isPatient)) return;
    const until = clock.now() + (isPatient ? PATIENCE_MS : 0);
    while (!(await this.#isTold(account)) && clock.now() < until && state() !== 'gone')
      await new Promise<void>((resolve) => void clock.after(TRY_AGAIN_MS, resolve));
  }

  async #isTold(account: AccountId): Promise<boolean> {
    return this.#of.untold.tell(account).then(
      () => true,
      () => false,
    );
  }

  /** @throws whatever the engine fails with */
  async tell(account: AccountId, tags: readonly Tag[]): Promise<void> {
    if (tags.length === 0) return;
    const { remote, vault } = this.#of;
    await Promise.all(
      facesOf(account, vault).map(async (face) => remote.touch(face.account, await namedTags(face.nameOf, tags))),
    );
  }

  /** A copy that is too large for the engine is this instance's alone; like any, good while its versions hold. */
  #keepHere(place: Place, entry: Entry, versions: Versions): true {
    this.#of.copies.set(place, { entry, versions });
    return true;
  }

  async #open(place: Place, value: Uint8Array, versions: Versions): Promise<Entry | undefined> {
    const { vault } = this.#of;
    const [face] = facesOf(place.account, vault);
    if (!face) return undefined;
    const { key }: NamedPlace = await namedPlace(face, place);
    const text = await vault.open(seat(face, key), value);
    const opened = text === undefined ? undefined : decodeEntry(text);
    // Under a second face something may have been touched since.
    const isWhole = opened?.others === versions.split(JOINT).slice(1).join(JOINT);
    return isWhole ? opened?.entry : undefined;
  }
}

/** What a value is bound to: whose it is, and where it stands. */
const seat = ({ account }: Face, key: string) => `answer 1 ${account} ${key}`;
