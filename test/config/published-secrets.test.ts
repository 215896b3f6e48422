import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { expectedOwnSecret } from '../../src/core/secrets.ts';

const ROOT = join(import.meta.dirname, '../..');
const THIS = 'test/config/';

/** What is given to a variable or constant of that name: quoted, or up to the next blank; in YAML as a default too. */
const GIVEN = /SECRETS?['"]?\s*(?:=|:)\s*(?:\$\{SECRETS:-)?(?:'([^'\n]+)'|"([^"\n]+)"|`([^`\n]+)`|([\w+/=,.!-]+))/g;

const secretsIn = (text: string) =>
  [...text.matchAll(GIVEN)]
    .flatMap(([, ...forms]) => forms.find((form) => form !== undefined)?.split(',') ?? [])
    .map((secret) => secret.trim())
    .filter((secret) => secret.length >= 32 && !secret.includes('${'));

const texts = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' })
  .split('\0')
  .filter((file) => file !== '' && !file.startsWith(THIS) && !file.endsWith('.png'))
  .map((file) => [file, readFileSync(join(ROOT, file), 'utf8')] as const);

it('finds secrets in each form in which they are written', () => {
  const [one, two] = ['for-this-test-only-0123456789abcdef', 'for-this-test-only-0123456789abcdeg'];
  const written = [
    `SESSIONS=true SECRETS=${one} npm start`,
    `SECRETS: \${SECRETS:-${one}}`,
    `{ SECRETS: '${one}' }`,
    `{"SECRETS": "${one}"}`,
    `export const SECRET = '${one}';`,
  ];
  for (const text of written) expect(secretsIn(text)).toEqual([one]);
  expect(secretsIn(`SECRETS=${one},${two}`)).toEqual([one, two]);
});

it('no secret that stands in this repository is one in production', () => {
  const found = texts.flatMap(([file, text]) => secretsIn(text).map((secret) => ({ file, secret })));
  expect(found.length).toBeGreaterThan(0);
  expect(found.filter(({ secret }) => expectedOwnSecret(secret) === undefined)).toEqual([]);
});
