import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** Reads a file that the build has copied; where nothing was built, the original. */
export function assets(folder: string, original: (name: string) => string | URL) {
  /** Read once for all answers. */
  const kept = new Map<string, Uint8Array<ArrayBuffer>>();
  return async (name: string): Promise<Uint8Array<ArrayBuffer>> => {
    const old = kept.get(name);
    if (old) return old;
    // The build puts the folder beside the bundle, or at the root of the package.
    const copies = ['.', '../..'].map((place) => new URL(`${place}/${folder}/${name}`, import.meta.url));
    const bytes = new Uint8Array(await readFile(copies.find((copy) => existsSync(copy)) ?? original(name)));
    kept.set(name, bytes);
    return bytes;
  };
}
