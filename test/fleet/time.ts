import { nodeSeal } from '../../src/entry/node/digest.ts';
import { PREFIX } from '../../src/entry/node/redis/scripts.ts';
import type { Held, Note } from '../../src/store/note.ts';
import { COPY_HEAD, NOTE, REV } from '../../src/store/sealed.ts';
import type { Fleet } from './fleet.ts';

const HOUR_MS = 3_600_000;

const noteAfter = (note: Note, ms: number): Note => ({
  ...note,
  marks: note.marks.map((mark) => ({ ...mark, busyUntil: mark.busyUntil - ms, until: mark.until - ms })),
  epoch: note.epoch > 0 ? note.epoch - Math.floor(ms / 1_000) : 0,
  ended: Object.fromEntries(Object.entries(note.ended).map(([id, until]) => [id, until - ms])),
  bytes: Object.fromEntries(
    Object.entries(note.bytes).map(([hour, of]) => [Number(hour) - Math.floor(ms / HOUR_MS), of]),
  ),
});

const heldAfter = ({ busyUntil, ...held }: Held, ms: number): Held =>
  busyUntil === undefined ? held : { ...held, busyUntil: busyUntil - ms };

/** The head of a copy is JSON in a line of its own. */
function copyAfter(text: string, ms: number): string {
  const end = text.indexOf('\n');
  const head = JSON.parse(text.slice(0, end)) as { readonly storedAt: number };
  return JSON.stringify({ ...head, storedAt: head.storedAt - ms }) + text.slice(end);
}

/** Lets so much time pass in the store of a fleet: what expires is closer to its end, and what it holds is older. */
export async function letPass({ redis, secrets }: Fleet, ms: number): Promise<void> {
  const seal = nodeSeal([secrets], 'portico store seal');
  await redis.pass(ms);
  for (const key of await redis.client.keys(`${PREFIX}*:*`)) {
    const value = await redis.client.getBuffer(key);
    const [, account = '', name = ''] = /^p\d+:([^:]+):(note|[rc]:.*)$/.exec(key) ?? [];
    if (!value || name === '') continue;
    const headLength = name === NOTE ? REV : name.startsWith('c:') ? COPY_HEAD : 0;
    const text = await seal.open(`${account} ${name}`, value.subarray(headLength));
    if (text === undefined) continue; // of another deployment
    const later =
      name === NOTE
        ? JSON.stringify(noteAfter(JSON.parse(text) as Note, ms))
        : name.startsWith('c:')
          ? copyAfter(text, ms)
          : JSON.stringify(heldAfter(JSON.parse(text) as Held, ms));
    const head = name === NOTE ? Buffer.from(crypto.randomUUID().slice(-REV)) : value.subarray(0, headLength);
    const sealed = Buffer.concat([head, await seal.seal(`${account} ${name}`, later)]);
    await redis.client.set(key, sealed, 'KEEPTTL');
  }
}
