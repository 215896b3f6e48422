import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** Where the build puts a folder: beside the bundle, or at the root of the package. */
const PLACES = ['.', '../..'];

/** Reads a file that the build has copied; where nothing was built, the original. */
export function assets(folder: string, original: (name: string) => string | URL) {
  /** Read once for all answers. */
  const kept = new Map<string, Uint8Array<ArrayBuffer>>();
  return async (name: string): Promise<Uint8Array<ArrayBuffer>> => {
    const old = kept.get(name);
    if (old) return old;
    const copies = PLACES.map((place) => new URL(`${place}/${folder}/${name}`, import.meta.url));
    const file = copies.find((copy) => existsSync(copy)) ?? original(name);
    const bytes = new Uint8Array(await readFile(file));
    kept.set(name, bytes);
    return bytes;
  };
}
