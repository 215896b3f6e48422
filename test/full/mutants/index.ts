import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import mutants from './list.json' with { type: 'json' };

/**
 * `npm run mutants`: breaks one function of `src` after the other in a copy, and runs the tests there. Each break has to
 * make one fail. Options: `--only 7` or `--only store/` for some, `--at-once 2` for how many at a time.
 */
const { values: args } = parseArgs({
  options: { only: { type: 'string', default: '' }, 'at-once': { type: 'string', default: '1' } },
});

/** What tests read. */
const COPIED = ['src', 'test', 'scripts', 'sandbox', 'client', 'docs', 'deploy', 'grafana', 'examples', '.github'];
const FILES = ['package.json', 'vitest.config.ts', 'wrangler.toml', 'tsconfig.base.json', 'tsconfig.json', 'README.md'];

function copy(): string {
  const folder = mkdtempSync(join(tmpdir(), 'portico-mutants-'));
  for (const name of [...COPIED, ...FILES, 'compose.yaml', 'Dockerfile', 'CONTRIBUTING.md', 'dist'])
    cpSync(name, join(folder, name), {
      recursive: true,
      force: true,
      filter: (path) => !path.includes('node_modules'),
    });
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** The first test that failed, or undefined where none did. */
async function run(folder: string): Promise<string | undefined> {
  const vitest = join(folder, 'node_modules/vitest/vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', '--bail', '1', '--reporter', 'tap-flat'], {
    cwd: folder,
    env: { ...process.env, CI: undefined },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (printed += text));
  const status = await new Promise<number | null>((resolve) => void child.once('close', resolve));
  if (status === 0) return undefined;
  return /^not ok \d+ - (.*)$/m.exec(printed)?.[1] ?? 'no file of tests could be run';
}

async function tryOne(folder: string, { file, from, to }: (typeof mutants)[number]): Promise<string | undefined> {
  const path = join(folder, 'src', file);
  const text = readFileSync(path, 'utf8');
  if (text.split(from).length !== 2) return `STALE: ${file} has not exactly one: ${from}`;
  writeFileSync(
    path,
    text.replace(from, () => to),
  );
  try {
    return await run(folder);
  } finally {
    writeFileSync(path, text);
  }
}

const wanted = mutants
  .map((mutant, at) => ({ ...mutant, number: at + 1 }))
  .filter(({ number, file }) => args.only === '' || String(number) === args.only || file.includes(args.only));
const lived: number[] = [];

async function work(): Promise<void> {
  const folder = copy();
  for (let next = wanted.shift(); next; next = wanted.shift()) {
    const failed = await tryOne(folder, next);
    if (failed === undefined || failed.startsWith('STALE')) lived.push(next.number);
    console.log(`| ${next.number} | ${next.file} | ${next.what} | ${failed ?? 'NOT CAUGHT'} |`);
  }
  rmSync(folder, { recursive: true });
}

console.log('| | file | break | caught by |\n| --- | --- | --- | --- |');
await Promise.all(Array.from({ length: Number(args['at-once']) }, work));
console.log(lived.length === 0 ? 'each was caught' : `not caught: ${lived.join(', ')}`);
process.exitCode = lived.length === 0 ? 0 : 1;
