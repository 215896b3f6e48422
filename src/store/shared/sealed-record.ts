import type { NewWrite, WriteRecord } from '../store.ts';
import { MAX_VALUE_BYTES } from './engine.ts';
import type { Sealer } from './sealer.ts';

/** Whose it is and which key: a record opens in no other place. */
const dataOf = ({ principal, key }: NewWrite) => `record ${principal} ${key}`;

export const recordName = (sealer: Sealer, { key }: NewWrite) => sealer.nameOf(`record ${key}`);

/** Of an answer too large to be kept it is kept at least that there was one. */
export async function sealRecord(sealer: Sealer, write: NewWrite, outcome: WriteRecord['outcome']) {
  const sealed = (content: WriteRecord) => sealer.sealRecord(dataOf(write), JSON.stringify(content));
  const { fingerprint } = write;
  const key = await recordName(sealer, write);
  const value = await sealed({ fingerprint, outcome });
  return { key, value: value.length > MAX_VALUE_BYTES ? await sealed({ fingerprint, outcome: 'unknown' }) : value };
}

/** One that cannot be opened is of unknown outcome, never free. */
export async function openRecord(
  sealer: Sealer,
  write: NewWrite,
  { value, isOver }: { readonly value: Uint8Array; readonly isOver: boolean },
): Promise<WriteRecord> {
  const text = await sealer.open(dataOf(write), value);
  if (text === undefined) return { fingerprint: write.fingerprint, outcome: 'unknown' };
  const record = JSON.parse(text) as WriteRecord; // sealed by an instance of ours, hence of this shape
  return isOver ? { ...record, outcome: 'unknown' } : record;
}
