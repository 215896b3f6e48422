import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const json = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;

/** Installs what the lockfile of a folder says, unless it is there. The folder ends with a slash. */
export function installIn(folder: string): void {
  const { dependencies, devDependencies } = json(`${folder}package.json`);
  const wanted = Object.entries<string>({ ...(dependencies as object), ...(devDependencies as object) });
  if (wanted.every(([name, version]) => isThere(version, versionIn(folder, name)))) return;
  console.log(`npm ci in ${folder}`);
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder, stdio: 'inherit' });
}

/** What is linked to a folder of ours may have any version. */
const isThere = (wanted: string, found: unknown) =>
  wanted.startsWith('file:') ? found !== undefined : found === wanted;

function versionIn(folder: string, name: string): unknown {
  const path = `${folder}node_modules/${name}/package.json`;
  return existsSync(path) ? json(path)['version'] : undefined;
}
