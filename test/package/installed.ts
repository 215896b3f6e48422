import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { emptyFolder, ROOT } from '../runtime/node-gateway.ts';

/** For the types of what a user's own files name. */
const OF_THE_USER = ['hono', '@types/node', 'undici-types'];

/**
 * A folder of a user: the files of `app`, and in `node_modules` what `npm pack` has packed. What the package names as its
 * dependencies, and hono, is linked from ours, and nothing else: an import of anything else fails.
 */
export function installed(): string {
  const folder = emptyFolder();
  cpSync(join(import.meta.dirname, 'app'), folder, { recursive: true });
  execFileSync('npm', ['pack', '--pack-destination', folder, '--loglevel=error'], { cwd: ROOT, stdio: 'pipe' });
  execFileSync('tar', ['xzf', 'portico-0.2.0.tgz'], { cwd: folder });
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  renameSync(join(folder, 'package'), join(modules, 'portico'));
  const manifest = JSON.parse(readFileSync(join(modules, 'portico/package.json'), 'utf8')) as { dependencies: object };
  for (const name of [...Object.keys(manifest.dependencies), ...OF_THE_USER]) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  return folder;
}
