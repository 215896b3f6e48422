import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, version } from 'node:process';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';

/** What the build makes of a module: an expression, a function of what the module has to be given. */
type Module = (require: NodeJS.Require, url: string) => void;

export interface Compiled {
  /** Where the code cache belongs that fits this code, this Node and this machine. */
  readonly cachePath: string;
  readonly script: Script;
  readonly run: () => void;
}

/**
 * Compiles a module with what V8 had compiled of it before, where the build left that: a start without takes some 50 ms
 * longer. V8 takes no cache of another version or other flags, and then compiles as ever. Node's own compile cache has
 * no function in it but those that V8 compiles before they run.
 */
export function compile(url: URL): Compiled {
  const filename = fileURLToPath(url);
  const source = readFileSync(url, 'utf8');
  // Of the code itself, V8 compares the length only.
  const cachePath = `${filename}.${crc32(source).toString(16)}-${version}-${arch}.cache`;
  const script = new Script(source, { filename, cachedData: contentsOf(cachePath) });
  const run = () => (script.runInThisContext() as Module)(createRequire(url), url.href);
  return { cachePath, script, run };
}

function contentsOf(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}
