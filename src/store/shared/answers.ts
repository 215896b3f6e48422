import type { AccountId, Answers, Entry, Found, Place, Tag, Versions } from '../store.ts';
import type { Copies } from './copies.ts';
import { type Face, facesOf, keyTag, type NamedPlace, namedPlace, namedTags } from './face.ts';
import type { PlaceQuestion, PlaceReply, Remote } from './remote.ts';
import { decodeEntry, encodeEntry } from './sealed-entry.ts';
import type { Untold } from './untold.ts';
import type { Vault } from './vault.ts';

export interface AnswersOptions {
  readonly remote: Remote;
  readonly vault: Vault;
  readonly copies: Copies;
  readonly untold: Untold;
}

/** Versions of each face of an account, joined; a token of an engine holds no such sign. */
const JOINT = '/';
/** Begins versions that no engine gave out: nothing is saved under them, and nobody shares them. */
const NOWHERE = 'nowhere ';

/** What is found where the engine does not answer: nothing, under versions that are nobody else's. */
export const foundNowhere = (): Found => ({ entry: undefined, versions: NOWHERE + crypto.randomUUID() });

/** Cached answers that instances share; each instance keeps copies, and asks whether they still hold. */
export class SharedAnswers implements Answers {
  readonly #of: AnswersOptions;

  constructor(options: AnswersOptions) {
    this.#of = options;
  }

  async lookup(place: Place): Promise<Found> {
    const { remote, vault, untold } = this.#of;
    try {
      await untold.tell(place.account);
      const faces = facesOf(place.account, vault);
      const replies = await Promise.all(
        faces.map(async (face, i) => remote.visit(face.account, { places: [await this.question(face, place, i)] })),
      );
      return await this.found(
        place,
        replies.map(({ places }) => places[0]),
      );
    } catch {
      return foundNowhere();
    }
  }

  /** What to ask about a place under one face of its account. Values are kept under the first alone. */
  async question(face: Face, place: Place, index: number): Promise<PlaceQuestion> {
    const copy = index === 0 ? this.#of.copies.get(place) : undefined;
    const have = copy && { versions: copy.versions.split(JOINT, 1)[0] ?? '', askedAt: copy.entry.askedAt };
    return { ...(await namedPlace(face, place)), have };
  }

  /** What the engine's replies, one for each face, say of a place. */
  async found(place: Place, replies: readonly (PlaceReply | undefined)[]): Promise<Found> {
    const versions = replies.map((reply) => reply?.versions ?? '').join(JOINT);
    const value = replies[0]?.value;
    if (value) await this.#keepCopy(place, value, versions);
    const copy = this.#of.copies.get(place);
    return { entry: copy?.versions === versions ? copy.entry : undefined, versions };
  }

  async save(place: Place, entry: Entry, versions: Versions): Promise<boolean> {
    const { remote, vault, copies, untold } = this.#of;
    const [face] = facesOf(place.account, vault);
    if (versions.startsWith(NOWHERE) || !face) return false;
    try {
      await untold.tell(place.account);
      const { key, tags } = await namedPlace(face, place);
      const [first = '', ...others] = versions.split(JOINT);
      const value = await vault.seal(seat(face, key), encodeEntry(entry, others.join(JOINT)));
      const lifeMs = Math.max(1, Math.ceil(entry.expiresAt - entry.storedAt));
      const isKept = await remote.save(face.account, {
        key,
        tags,
        versions: first,
        askedAt: entry.askedAt,
        value,
        lifeMs,
      });
      if (isKept) copies.set(place, { entry, versions });
      return isKept;
    } catch {
      return false;
    }
  }

  async drop(place: Place): Promise<void> {
    this.#of.copies.delete(place);
    await this.touch(place.account, [keyTag(place.key)]);
  }

  /** Never rejects: what the engine does not hear is kept, and told before it is used again. */
  async touch(account: AccountId, tags: readonly Tag[]): Promise<void> {
    const { untold } = this.#of;
    if (tags.length === 0) return;
    untold.keepTags(account, tags);
    await untold.tell(account).catch(() => undefined);
  }

  /** @throws whatever the engine fails with */
  async tell(account: AccountId, tags: readonly Tag[]): Promise<void> {
    if (tags.length === 0) return;
    const { remote, vault } = this.#of;
    await Promise.all(
      facesOf(account, vault).map(async (face) => remote.touch(face.account, await namedTags(face.nameOf, tags))),
    );
  }

  async #keepCopy(place: Place, value: Uint8Array, versions: Versions): Promise<void> {
    const { vault, copies } = this.#of;
    const [face] = facesOf(place.account, vault);
    if (!face) return;
    const { key }: NamedPlace = await namedPlace(face, place);
    const text = await vault.open(seat(face, key), value);
    const opened = text === undefined ? undefined : decodeEntry(text);
    // Under a second face something may have been touched since.
    const isWhole = opened?.others === versions.split(JOINT).slice(1).join(JOINT);
    if (opened && isWhole) copies.set(place, { entry: opened.entry, versions });
  }
}

/** What a value is bound to: whose it is, and where it stands. */
const seat = ({ account }: Face, key: string) => `answer 1 ${account} ${key}`;
