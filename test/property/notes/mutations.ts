import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Tried } from './world.ts';

interface Mutation {
  /** Rule of docs/store.md that is taken out. */
  readonly rule: string;
  /** In src/store. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Rules that the code itself keeps, each taken out by a change of one place. */
export const MUTATIONS = {
  noteLife: {
    rule: '2: a note outlives any copy',
    file: 'note.ts',
    from: 'Math.max(now + leastMs,',
    to: 'Math.max(now + 1_000,',
  },
  sessionLife: {
    rule: '2: a note lives as long as its ended sessions',
    file: 'note.ts',
    from: '...Object.values(sessions), ',
    to: '',
  },
  tokenInVersion: {
    rule: '4: a version begins with the token',
    file: 'snapshot.ts',
    from: '`${seen?.token} ${version}`',
    to: 'version',
  },
  overInVersion: {
    rule: '4: a mark whose time is over is part of the version',
    file: 'note.ts',
    from: 'version += `.${mark.nonce}`;',
    to: '',
  },
  hides: {
    rule: '5: a live mark hides what it touches',
    file: 'note.ts',
    from: 'if (mark.until > now) return undefined;',
    to: '',
  },
  endRenews: {
    rule: '6: an end gives its tags new versions',
    file: 'note.ts',
    from: "const after = renewed(left, end === 'not_sent' ? [] : ",
    to: 'const after = renewed(left, end ? [] : ',
  },
  unknownStays: {
    rule: '6: an unknown end leaves the mark',
    file: 'note.ts',
    from: "end === 'unknown' ? [...others, own] : others",
    to: 'others',
  },
  notSentReplaces: {
    rule: '6: `not_sent` replaces the note although nothing changes',
    file: 'accounts.ts',
    from: 'const decide: Decide<never> = (note, held, at) => ended(',
    to: "const decide: Decide<unknown> = (note, held, at) => end === 'not_sent' && !note.marks.some(({ nonce }) => nonce === write.nonce) ? undefined : ended(",
  },
  cleanedRenews: {
    rule: '7: who takes away marks that are over gives new versions',
    file: 'note.ts',
    from: 'return renewed(\n    left,\n    over.flatMap(({ tags }) => tags),\n  );',
    to: 'return left;',
  },
  recordPrevents: {
    rule: "8: another's record prevents a beginning",
    file: 'note.ts',
    from: 'if (held) return { record: outcomeOf(held, now) };',
    to: '',
  },
  ownRecord: {
    rule: '8: an end changes no record of another',
    file: 'note.ts',
    from: 'const isOther = key === undefined || (held !== undefined && held.nonce !== nonce);',
    to: 'const isOther = key === undefined;',
  },
  neverFree: {
    rule: '8: a record without an answer is never free',
    file: 'note.ts',
    from: 'if (held) return {',
    to: 'if (held && !(held.busyUntil !== undefined && held.busyUntil <= now)) return {',
  },
  equalPrevents: {
    rule: '8: an equal purchase prevents a beginning',
    file: 'note.ts',
    from: 'if (outcome) return { record',
    to: 'if (!note) return { record',
  },
  queue: {
    rule: '9: changes of an account are one after the other',
    file: 'changes.ts',
    from: 'const done = this.#last.get(account)?.then(change) ?? change();',
    to: 'const done = change();',
  },
  givenUp: {
    rule: '9: a beginning that was given up before its turn never was',
    file: 'accounts.ts',
    from: 'return !isGivenUp;',
    to: 'return true;',
  },
  unreliableReads: {
    rule: '13: no copy of a store that is new',
    file: 'snapshot.ts',
    from: '!seen || backend.reliableAt > backend.now() ||',
    to: '!seen ||',
  },
  unreliableWrites: {
    rule: '13: no key and no purchase with a store that is new',
    file: 'accounts.ts',
    from: "&& backend.reliableAt > now ? 'unreliable' : result",
    to: "&& backend.now() < 0 ? 'unreliable' : result",
  },
  unreliableQuestions: {
    rule: '13: a store that is new does not say that a key is unknown',
    file: 'accounts.ts',
    from: 'return backend.reliableAt > backend.now() ? {',
    to: 'return backend.now() < 0 ? {',
  },
  hiddenAlone: {
    rule: '15: without the store, and under a mark, no call is joined',
    file: 'snapshot.ts',
    from: 'hidden(crypto.randomUUID())',
    to: "hidden('alike')",
  },
  laterStays: {
    rule: '16: a copy that was asked for later stays',
    file: 'copies.ts',
    from: 'if (laterMs > 0 && laterMs < LATER_MS) return false;',
    to: '',
  },
  grantsCounted: {
    rule: '17: the store counts all that an instance may use',
    file: 'limits.ts',
    from: 'this.#backend.count(account, window, granted)',
    to: 'this.#backend.count(account, window, 1).then((count) => ({ ...count, used: count.used + granted - 1 }))',
  },
  revokedKnown: {
    rule: '18: a sign-out is answered when the note has it',
    file: 'instance.ts',
    from: '(await this.inTime(telling, WRITE_MS)) === true;',
    to: '(await this.inTime(telling, WRITE_MS)) !== false;',
  },
} as const satisfies Record<string, Mutation>;

export type MutationName = keyof typeof MUTATIONS;

const ROOT = join(import.meta.dirname, '../../..');

/** The code without that rule, from a copy of it that is removed again. */
export async function withoutRule(name: MutationName): Promise<Tried> {
  const { file, from, to } = MUTATIONS[name];
  const copy = join(ROOT, 'test-output/rules', name);
  await rm(copy, { recursive: true, force: true });
  for (const room of ['core', 'store']) await cp(join(ROOT, 'src', room), join(copy, room), { recursive: true });
  const path = join(copy, 'store', file);
  const text = await readFile(path, 'utf8');
  const places = text.split(from).length - 1;
  if (places !== 1) throw new Error(`${name}: ${places} places in ${file} read ${from}`);
  await writeFile(
    path,
    text.replace(from, () => to),
  );
  const modules = ['accounts', 'sealed'].map(
    (module) => import(pathToFileURL(join(copy, 'store', `${module}.ts`)).href),
  );
  const [accounts, sealed] = await Promise.all(modules);
  await rm(copy, { recursive: true, force: true });
  return { Accounts: accounts.Accounts, SealedNotes: sealed.SealedNotes };
}
