import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const FOLDER = new URL('../peers/', import.meta.url).pathname;

const json = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;

/** Installs what the lockfile of `bench/peers` says, unless it is there. */
export function installPeers(): void {
  const wanted = Object.entries(json(`${FOLDER}package.json`)['dependencies'] as Record<string, string>);
  if (wanted.every(([name, version]) => versionOf(name) === version)) return;
  console.log('npm ci in bench/peers');
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: FOLDER, stdio: 'inherit' });
}

function versionOf(name: string): unknown {
  const path = `${FOLDER}node_modules/${name}/package.json`;
  return existsSync(path) ? json(path)['version'] : undefined;
}
