import type { KeyReply, Question, Save, SnapshotReply } from '../../../store/shared/engine.ts';

type Arg = string | number | Buffer;

export const bytesOf = (value: Uint8Array) => Buffer.from(value.buffer, value.byteOffset, value.byteLength);

/** The fields of an account with the versions of tags. */
const versionsOf = (all: readonly { readonly tags: readonly string[] }[]) =>
  all.flatMap(({ tags }) => tags.map((tag) => `t${tag}`));

/** As the script `snapshot` takes it. */
export function questionArgs({ window, count, advance, session, sessionEpoch, keys }: Question): readonly Arg[] {
  const { name, lengthMs = 0, limit = 0 } = window ?? {};
  const ofWindow = [name === undefined ? '' : `w${name}`, Math.ceil(lengthMs), limit, count ?? 1, advance ?? 0];
  const ofKeys = keys.flatMap(({ key, tags, have, lease = '', waitedFor = '' }) => {
    const own = have ? [have.version, have.askedAt, Number(have.isFresh)] : ['', 0, 0];
    return [key, tags.length, ...own, lease, waitedFor];
  });
  const ofSession = session === undefined ? [] : [`s${session}`, 'x', 'X'];
  return [...ofWindow, session ?? '', sessionEpoch ?? 0, ...ofKeys, ...ofSession, ...versionsOf(keys)];
}

/** As the script `save` takes them. */
export function saveArgs(saves: readonly Save[]): readonly Arg[] {
  const args = saves.flatMap(({ key, tags, version, askedAt, lease = '', drop = '', copy }): readonly Arg[] => {
    const ofCopy = copy ? [copy.freshMs, Math.max(1, Math.ceil(copy.lifeMs)), bytesOf(copy.value)] : ['', '', ''];
    return [key, version, askedAt, lease, drop, tags.length, ...ofCopy];
  });
  return [...args, ...versionsOf(saves)];
}

/** What a script replies: text comes as bytes, and null is what is not there. */
type Item = Buffer | number | null;

const numberOf = (item: Item | undefined) => (typeof item === 'number' ? item : undefined);
const textOf = (item: Item | undefined) => (item instanceof Buffer ? item.toString() : undefined);

const HEAD = 9;
const EACH = 5;

function useOf(used: Item | undefined, leftMs: Item | undefined, advance?: Item) {
  if (typeof used !== 'number' || typeof leftMs !== 'number') return undefined;
  return { used, leftMs, ...(typeof advance === 'number' && { advance }) };
}

/** What the script `snapshot` has replied, without token and number. */
export function snapshotOf({ session }: Question, reply: readonly unknown[]): SnapshotReply {
  const items = reply as readonly Item[];
  const [count, now, cooldownMs, used, leftMs, advance, isRevoked, epoch, sinceMs] = items;
  const keys = Array.from({ length: numberOf(count) ?? 0 }, (_, i) => keyOf(items, HEAD + EACH * i));
  const state = { isRevoked: isRevoked === 1, epoch: numberOf(epoch) ?? 0, sinceMs: numberOf(sinceMs) };
  return {
    now: numberOf(now) ?? 0,
    cooldownMs: numberOf(cooldownMs) ?? 0,
    use: useOf(used, leftMs, advance),
    session: session === undefined ? undefined : state,
    keys,
  };
}

function keyOf(items: readonly Item[], from: number): KeyReply | undefined {
  const [version, lease, askedAt, ageMs, value] = items.slice(from, from + EACH);
  const name = textOf(version);
  if (name === undefined) return undefined;
  const copy = typeof askedAt === 'number' && {
    askedAt,
    ageMs: numberOf(ageMs) ?? 0,
    ...(value instanceof Buffer && { value }),
  };
  return { version: name, ...(copy && { copy }), ...(lease instanceof Buffer && { lease: textOf(lease) }) };
}
