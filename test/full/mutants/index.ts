import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import mutants from './list.json' with { type: 'json' };

/**
 * `npm run mutants`: breaks one function of `src` after the other in a copy, and runs the tests there. Each break has to
 * make one fail, or says why it changes nothing that is promised. Options: `--only 7,12` or `--only store/` for some, `--at-once 2` for how many at a time.
 */
const { values: args } = parseArgs({
  options: { only: { type: 'string', default: '' }, 'at-once': { type: 'string', default: '1' } },
});

/** Of what is in git, as it is now. */
function copy(): string {
  const folder = mkdtempSync(join(tmpdir(), 'portico-mutants-'));
  const files = execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' }).split('\0').filter(existsSync);
  for (const file of files) cpSync(file, join(folder, file));
  const git = (...words: string[]) => execFileSync('git', words, { cwd: folder });
  git('init', '-q'); // a test asks what is in it
  git('add', '-A');
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** The first test that failed, or undefined where none did. */
async function run(folder: string): Promise<string | undefined> {
  const vitest = join(folder, 'node_modules/vitest/vitest.mjs');
  const child = spawn(
    process.execPath,
    [vitest, 'run', '--bail', '1', '--reporter', 'json', '--outputFile', 'result.json'],
    {
      cwd: folder,
      env: { ...process.env, CI: undefined },
      stdio: 'ignore',
    },
  );
  const status = await new Promise<number | null>((resolve) => void child.once('close', resolve));
  if (status === 0) return undefined;
  const { testResults } = JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8')) as Report;
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  return tests.find((one) => one.status === 'failed')?.fullName ?? 'no file of tests could be run';
}

interface Mutant {
  readonly file: string;
  readonly what: string;
  readonly from: string;
  readonly to: string;
  /** Why nothing that is promised changes. No test has to fail then. */
  readonly same?: string;
}

async function tryOne(folder: string, { file, from, to }: Mutant): Promise<string | undefined> {
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

/** Numbers, or parts of paths: an empty one is part of each. */
const only = args.only.split(',');
const wanted = (mutants as readonly Mutant[])
  .map((mutant, at) => ({ ...mutant, number: at + 1 }))
  .filter(({ number, file }) => only.some((one) => one === String(number) || file.includes(one)));
const lived: number[] = [];

async function work(): Promise<void> {
  const folder = copy();
  const unbroken = await run(folder);
  if (unbroken !== undefined) throw new Error(`a test fails where nothing is broken: ${unbroken}`);
  for (let next = wanted.shift(); next; next = wanted.shift()) {
    const failed = await tryOne(folder, next);
    const isCaught = failed === undefined ? next.same !== undefined : !failed.startsWith('STALE');
    if (!isCaught) lived.push(next.number);
    console.log(`| ${next.number} | ${next.file} | ${next.what} | ${failed ?? next.same ?? 'NOT CAUGHT'} |`);
  }
  rmSync(folder, { recursive: true });
}

console.log('| | file | break | caught by |\n| --- | --- | --- | --- |');
await Promise.all(Array.from({ length: Number(args['at-once']) }, work));
console.log(lived.length === 0 ? 'each was caught' : `not caught: ${lived.join(', ')}`);
process.exitCode = lived.length === 0 ? 0 : 1;
