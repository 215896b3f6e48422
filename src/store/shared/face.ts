import { andThen, type MaybePromise } from '../../core/runtime.ts';
import { type AccountId, accountNamesOf, EVERYTHING, type Place, type Tag } from '../store.ts';
import { ALL } from './remote.ts';
import type { Namer, Vault } from './vault.ts';

/** An account under one of its names, and how names are made there. Usually an account has only one. */
export interface Face {
  /** Which secret of the list. */
  readonly index: number;
  readonly account: string;
  readonly nameOf: Namer;
}

/** As many as there are secrets; the first's first. */
export function facesOf(account: AccountId, { namers }: Vault): readonly Face[] {
  const names = accountNamesOf(account);
  return namers.flatMap((nameOf, i) => (names[i] === undefined ? [] : [{ index: i, account: names[i], nameOf }]));
}

/** For copies that are forgotten one by one, the key counts as a tag too; no tag of the table begins like it. */
export const keyTag = (key: string): Tag => `=${key}`;

/** A place as an engine knows it. */
export interface NamedPlace {
  readonly key: string;
  readonly tags: readonly string[];
}

export function namedPlace({ nameOf }: Face, { key, tags }: Pick<Place, 'key' | 'tags'>): MaybePromise<NamedPlace> {
  return andThen(nameOf(key), (name) =>
    andThen(namedTags(nameOf, [keyTag(key), ...tags]), (named) => ({ key: name, tags: named })),
  );
}

/** At once where all names are known already. */
export function namedTags(nameOf: Namer, tags: readonly Tag[]): MaybePromise<readonly string[]> {
  const names = tags.map((tag) => (tag === EVERYTHING ? ALL : nameOf(tag)));
  if (names.every((name) => typeof name === 'string')) return names;
  return Promise.all(names.map(async (name) => name));
}
