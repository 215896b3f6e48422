import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Modules } from './views-instance.ts';

/** A piece of a source file, and what stands in its place where the rule is taken out. */
export interface Change {
  /** Below `src`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const ROOT = join(import.meta.dirname, '../..');

/** The modules of an instance, from a copy of `src` in which that was changed. @throws Error where a piece is not there exactly once */
export async function modulesWith(changes: readonly Change[]): Promise<Modules & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'portico-rule-'));
  await cp(join(ROOT, 'src'), join(folder, 'src'), { recursive: true });
  await cp(join(ROOT, 'package.json'), join(folder, 'package.json'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, from, to } of changes) {
    const path = join(folder, 'src', file);
    const parts = (await readFile(path, 'utf8')).split(from);
    if (parts.length !== 2) throw new Error(`${file} has this ${parts.length - 1} times, not once: ${from}`);
    await writeFile(path, parts.join(to));
  }
  // The same exports as in `src`.
  const load = (file: string): Promise<unknown> =>
    import(/* @vite-ignore */ pathToFileURL(join(folder, 'src', file)).href);
  const all = await Promise.all(['store/shared.ts', 'entry/node/redis/engine.ts', 'store/shared/sealer.ts'].map(load));
  return {
    ...(Object.assign({}, ...all) as Modules),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
