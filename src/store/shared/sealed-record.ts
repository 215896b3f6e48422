import type { NewWrite, WriteRecord } from '../store.ts';
import { MAX_VALUE_BYTES } from './engine.ts';
import type { Sealer } from './sealer.ts';

/** A record can be opened for its principal and key only. */
const additionalDataOf = ({ principal, key }: NewWrite) => `record ${principal} ${key}`;

export const recordName = (sealer: Sealer, { key }: NewWrite) => sealer.nameOf(`record ${key}`);

/** An answer that is too large is recorded as of unknown outcome. */
export async function sealRecord(sealer: Sealer, write: NewWrite, outcome: WriteRecord['outcome']) {
  const sealed = (content: WriteRecord) => sealer.sealRecord(additionalDataOf(write), JSON.stringify(content));
  const { fingerprint } = write;
  const key = await recordName(sealer, write);
  const value = await sealed({ fingerprint, outcome });
  return { key, value: value.length > MAX_VALUE_BYTES ? await sealed({ fingerprint, outcome: 'unknown' }) : value };
}

/** A record that cannot be opened is of unknown outcome: its key stays taken. */
export async function openRecord(
  sealer: Sealer,
  write: NewWrite,
  { value, isOver }: { readonly value: Uint8Array; readonly isOver: boolean },
): Promise<WriteRecord> {
  const text = await sealer.open(additionalDataOf(write), value);
  if (text === undefined) return { fingerprint: write.fingerprint, outcome: 'unknown' };
  const record = JSON.parse(text) as WriteRecord; // written by `sealRecord`, hence of this shape
  return isOver ? { ...record, outcome: 'unknown' } : record;
}
