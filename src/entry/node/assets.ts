import { readFile } from 'node:fs/promises';

/** Reads a file that the build puts beside the bundle; where there is no bundle, the one that it is a copy of. */
export function assets(folder: string, original: (name: string) => string | URL) {
  /** Read once for all answers. */
  const kept = new Map<string, Uint8Array<ArrayBuffer>>();
  return async (name: string): Promise<Uint8Array<ArrayBuffer>> => {
    const beside = new URL(`${folder}/${name}`, import.meta.url);
    const bytes = kept.get(name) ?? new Uint8Array(await readFile(beside).catch(() => readFile(original(name))));
    kept.set(name, bytes);
    return bytes;
  };
}
