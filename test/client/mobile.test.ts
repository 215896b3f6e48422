import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ERROR_CODES } from '../../src/core/errors.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/mobile.md'), 'utf8');
/** Codes in the first column of the table, before the statuses. */
const told = Array.from(page.matchAll(/^\| (`[^|]*)\| (?:\d|any)/gm), ([, codes = '']) => codes).join();

test.for([...ERROR_CODES, 'connection_failed', 'unexpected_answer', 'account_changed'])(
  'the page for phones says what %s means for a screen',
  (code) => {
    expect(told).toContain(`\`${code}\``);
  },
);
