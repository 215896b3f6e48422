import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { WorkerBundle } from '../runtime/bare-worker.ts';
import { ROOT } from '../runtime/node-gateway.ts';

interface Release {
  readonly commit: string;
  readonly version: string;
}

/** The bundles of a release, made by its own scripts. */
export interface Built extends Release {
  readonly node: string;
  readonly worker: WorkerBundle;
}

const BUILDS = join(ROOT, 'test-output/versions');

let built: Promise<Built> | undefined;

/** The other version of the tests in this folder, built once for each commit. */
export const builtRelease = (): Promise<Built> => (built ??= find());

async function find(): Promise<Built> {
  const release = lastRelease(ROOT);
  const folder = join(BUILDS, release.commit);
  if (!existsSync(folder)) await build(release, folder);
  return { ...release, node: join(folder, 'dist/portico.cjs'), worker: { root: folder } };
}

/**
 * The commit before HEAD that last raised the version in package.json. What is not committed does not count. HEAD does
 * not either: where it raises the version, it is the new one, and what it takes the place of is the one before.
 */
export function lastRelease(root: string): Release {
  const [head = ''] = linesOf(root, ['rev-parse', 'HEAD']);
  const found = linesOf(root, ['log', '--diff-filter=M', '--format=%H %P', '-G"version":', '--', 'package.json'])
    .map((line) => line.split(' '))
    .find(
      ([commit = '', parent]) =>
        commit !== head && parent && isHigher(versionAt(root, commit), versionAt(root, parent)),
    );
  const [commit] = found ?? [];
  if (commit) return { commit, version: versionAt(root, commit) };
  const isShallow = linesOf(root, ['rev-parse', '--is-shallow-repository'])[0] === 'true';
  const help = isShallow ? 'this clone is shallow: `git fetch --unshallow`' : 'the history has to reach back to one';
  throw new Error(`no commit before HEAD raises the version in package.json: ${help}`);
}

const isHigher = (one: string, other: string) => one.localeCompare(other, 'en', { numeric: true }) > 0;

function versionAt(root: string, commit: string): string {
  const { version = '0' } = JSON.parse(git(root, ['show', `${commit}:./package.json`])) as {
    readonly version?: string;
  };
  return version;
}

const linesOf = (root: string, args: readonly string[]) => git(root, args).split('\n').filter(Boolean);

function git(root: string, args: readonly string[]): string {
  try {
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    throw new Error("the other version is built from git's history, which cannot be read", { cause: error });
  }
}

/** Elsewhere first, so that whoever finds it finds all of it. */
async function build({ commit }: Release, folder: string): Promise<void> {
  const making = `${folder}-${process.pid}`;
  const archive = `${making}.tar`;
  await rm(making, { recursive: true, force: true });
  await mkdir(making, { recursive: true });
  const run = (command: string, ...args: readonly string[]) => promisify(execFile)(command, args, { cwd: making });
  await run('git', '-C', ROOT, 'archive', `--output=${archive}`, commit);
  await run('tar', '-xf', archive);
  await rm(archive);
  if (isInstalled(making)) await symlink(join(ROOT, 'node_modules'), join(making, 'node_modules'));
  else await run('npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund');
  await run(process.execPath, 'scripts/build.ts');
  try {
    await rename(making, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    await rm(making, { recursive: true }); // another process was faster
  }
}

/** Whether all that its lockfile asks for is what ours asks for too. */
function isInstalled(folder: string): boolean {
  const ours = packagesOf(ROOT);
  const wanted = Object.entries(packagesOf(folder));
  return wanted.every(([path, { version }]) => !path.startsWith('node_modules/') || ours[path]?.version === version);
}

const packagesOf = (folder: string) =>
  (JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as Lockfile).packages;

interface Lockfile {
  readonly packages: Readonly<Record<string, { readonly version?: string }>>;
}
