import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { storeAddressOf } from '../../../src/entry/node/redis/address.ts';
import { each, type Rows } from '../rows.ts';

const SECRET = 'the secret of these rows and of no other';
const SHORT = 'to be a secret of 32 characters or more';
const EMPTY = 'not to be empty; is there a comma too many?';

const folder = mkdtempSync(join(tmpdir(), 'portico-rows-'));

let count = 0;
function file(content: string | Uint8Array): string {
  const path = join(folder, `secret-${count++}`);
  writeFileSync(path, content);
  return path;
}

const NO_FILE = [
  [join(folder, 'nothing'), 'a file that is there'],
  [folder, 'a file, not a folder'],
  [file(''), 'a file that is not empty'],
  [file('\r\n\n'), 'a file that is not empty'],
  [file(Buffer.from('ffff', 'hex')), 'a file in UTF-8'],
] as const;

export const rows: readonly Rows[] = [
  {
    variable: 'SECRETS',
    good: [
      ['x'.repeat(32), ['x'.repeat(32)]],
      [` ${SECRET}, ${SECRET}y`, [SECRET, `${SECRET}y`]],
      [[SECRET, `${SECRET}y`, SECRET].join(), [SECRET, `${SECRET}y`, SECRET]],
    ],
    bad: [
      ...each(['x', 'x'.repeat(31), `${'x'.repeat(31)} `], `entry 1 ${SHORT}`),
      [`${SECRET},x`, `entry 2 ${SHORT}`],
      [`${SECRET},${SECRET},x,y`, `entry 3 ${SHORT}`],
      [`${SECRET},`, `entry 2 ${EMPTY}`],
      [`${SECRET}, ,${SECRET}`, `entry 2 ${EMPTY}`],
      [',', `entry 1 ${EMPTY}`],
      [' ', `entry 1 ${EMPTY}`],
    ],
  },
  {
    variable: 'SECRETS_FILE',
    beside: { SESSIONS: 'false' },
    meaning: ({ secrets }) => secrets,
    good: [
      [file(SECRET), [SECRET]],
      [file(`${SECRET}\n`), [SECRET]],
      [file(`\uFEFF${SECRET},${SECRET}y\r\n`), [SECRET, `${SECRET}y`]],
    ],
    bad: NO_FILE,
  },
  {
    variable: 'STORE_URL_FILE',
    beside: { SECRETS: SECRET },
    meaning: ({ storeUrl }) => storeUrl,
    good: [[file('redis://:p%40ss@store/1\n'), storeAddressOf('redis://:p%40ss@store/1')]],
    bad: NO_FILE,
  },
];
