import { randomUUID } from 'node:crypto';
import type { Engine, KeyQuestion, KeyReply, Save } from '../../src/store/shared/engine.ts';
import type { WriteBegin, WriteBegun, WriteEnded } from '../../src/store/writes.ts';

/** An engine under test, whose time passes with `pass`, and a little on its own. */
export interface TestedEngine {
  readonly engine: Engine;
  /** Less than 0 sets the clock back. */
  pass(ms: number): Promise<void>;
  /** How far off an end may be. */
  readonly slackMs: number;
}

export const COPY = { freshMs: 30_000, lifeMs: 90_000 };
export const VALUE = Buffer.from([0, 10, 13, 255, 32, 65]);

export const valueOf = (text: string) => Buffer.from(`${text}\0\n${text}`);

/** Accounts are new for each test, so that all can use one engine. */
export function asker(engine: Engine, account: string = randomUUID()) {
  const snapshot = async (question: Partial<KeyQuestion> = {}) => {
    const { now, keys } = await engine.snapshot(account, { keys: [{ key: 'k', tags: ['t'], ...question }] });
    return { now, reply: keys[0] };
  };
  const look = async (question: Partial<KeyQuestion> = {}): Promise<KeyReply> => {
    const { reply } = await snapshot(question);
    if (!reply) throw new Error('no reply on the key');
    return reply;
  };
  const version = async (...tags: string[]) => (await look({ tags })).version;
  const save = (given: Partial<Save> & Pick<Save, 'version' | 'askedAt'>) =>
    engine.save(account, { key: 'k', tags: ['t'], copy: { value: VALUE, ...COPY }, ...given });
  /** Asks for a key, and saves a copy of it. */
  const keep = async (text: string, question: Partial<KeyQuestion> = {}, copy: Partial<typeof COPY> = {}) => {
    const { now: askedAt, reply } = await snapshot(question);
    const known = { version: reply?.version ?? '', askedAt };
    const { key = 'k', tags = ['t'] } = question;
    await save({ key, tags, ...known, copy: { value: valueOf(text), ...COPY, ...copy } });
    return known;
  };
  const begin = (write: Partial<WriteBegin> = {}): Promise<WriteBegun> =>
    engine.beginWrite(account, { nonce: randomUUID(), tags: ['t'], busyMs: 10_000, markMs: 70_000, ...write });
  const end = (nonce: string, how: WriteEnded['end'], more: Partial<WriteEnded> = {}) =>
    engine.endWrite(account, { nonce, end: how, tags: ['t'], markMs: 60_000, ...more });
  return { account, snapshot, look, version, save, keep, begin, end };
}

export type Asker = ReturnType<typeof asker>;
