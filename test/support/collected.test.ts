import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');

/** Which of them a config collects. */
function collected(config: string, files: readonly string[], env: Readonly<Record<string, string>>): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'portico-collected-'));
  for (const file of files) {
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    writeFileSync(join(folder, file), '');
  }
  const args = [VITEST, 'list', '--filesOnly', '--json', '--root', folder, '--config', join(ROOT, config)];
  const printed = execFileSync(process.execPath, args, { env: { PATH: process.env['PATH'] ?? '', ...env } });
  const found = JSON.parse(String(printed)) as { readonly file: string }[];
  return [...new Set(found.map(({ file }) => file.slice(folder.length + 1)))];
}

const FOLDERS = ['batch', 'browser', 'cache', 'gateway', 'logs', 'property', 'runtime'];
const ours = FOLDERS.map((folder) => `test/${folder}/a.test.ts`);
const ofPackages = FOLDERS.map((folder) => `test/${folder}/node_modules/package/a.test.ts`);

it.each([
  ['npm test', 'vitest.config.ts', {}, /^(?!test.browser)/],
  ['CI=true npm test', 'vitest.config.ts', { CI: 'true' }, /^(?!test.browser)/],
  ['npm run test:browser', 'vitest.browser.config.ts', {}, /^test.browser/],
])('%s collects our tests, and none of a package that is installed beside them', (_, config, env, which) => {
  const found = collected(config, [...ours, ...ofPackages], env);
  expect(found.toSorted()).toEqual(ours.filter((file) => which.test(file)));
});
