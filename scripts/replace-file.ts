import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** At once, and only where something changes: several builds may write the same, and a workerd may be watching. */
export async function replaceFile(path: string, contents: Uint8Array): Promise<void> {
  const old = await readFile(path).catch(() => undefined);
  if (old?.equals(contents)) return;
  await mkdir(dirname(path), { recursive: true });
  const fresh = `${path}.${process.pid}.tmp`;
  await writeFile(fresh, contents);
  await rename(fresh, path);
}
