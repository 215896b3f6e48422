import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inject } from 'vitest';
import { freePort } from '../../support/ports.ts';
import { folderWith, ROOT, run } from '../../support/process.ts';

/** For the types of what a user's own files name. */
const OF_THE_USER = ['hono', '@types/node', 'undici-types'];

/**
 * A folder of a user: the files of `app`, and in `node_modules` what `npm pack` has packed. What the package names as its
 * dependencies, and hono, is linked from ours, and nothing else: an import of anything else fails.
 */
export function installed(): string {
  const folder = folderWith();
  cpSync(join(import.meta.dirname, 'app'), folder, { recursive: true });
  execFileSync('tar', ['xzf', inject('tarball')], { cwd: folder });
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

type Variables = Readonly<Record<string, string>>;

/** What the objects of accounts keep is sealed with it. */
const SECRETS = 'for-development-only-and-known-to-all';

/** Start a file of that folder, which serves. Resolve with its URL. */
export const startIn = {
  async node(folder: string, variables: Variables, file = 'node.ts'): Promise<string> {
    const port = String(await freePort());
    const env = { HOST: '127.0.0.1', PORT: port, ADMIN_PORT: '0', ...variables };
    const running = run(env, { cwd: folder, command: [process.execPath, file] });
    await running.line(({ msg }) => msg === 'listening');
    return `http://127.0.0.1:${port}`;
  },
  async workerd(folder: string, variables: Variables, file = 'worker.ts'): Promise<string> {
    const port = String(await freePort());
    const where = ['--ip', '127.0.0.1', '--port', port, '--inspector-port', '0', '--persist-to', folderWith()];
    const vars = Object.entries({ SECRETS, ...variables }).flatMap(([name, value]) => ['--var', `${name}:${value}`]);
    const wrangler = join(ROOT, 'node_modules/wrangler/bin/wrangler.js');
    const env = { HOME: folder, WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' };
    const command = [process.execPath, wrangler, 'dev', file, ...where, ...vars] as const;
    const running = run(env, { cwd: folder, command });
    await running.until(() => /Ready on/.exec(running.stdout()) ?? undefined);
    return `http://127.0.0.1:${port}`;
  },
} as const;
