import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const json = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;

/** Installs what the lockfile of a folder says, unless it is there. The folder ends with a slash. */
export function installIn(folder: string): void {
  const wanted = Object.entries(json(`${folder}package.json`)['dependencies'] as Record<string, string>);
  if (wanted.every(([name, version]) => versionIn(folder, name) === version)) return;
  console.log(`npm ci in ${folder}`);
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder, stdio: 'inherit' });
}

function versionIn(folder: string, name: string): unknown {
  const path = `${folder}node_modules/${name}/package.json`;
  return existsSync(path) ? json(path)['version'] : undefined;
}
