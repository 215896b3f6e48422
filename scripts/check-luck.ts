import { globSync, readFileSync } from 'node:fs';

/**
 * Says where a test of `npm test` waits for time to pass, measures it, or asks again and again: on a busy machine it then
 * fails by itself. Time is `pass`, order is `hold`, what has to come is an event. In `test/support` and `test/full` they
 * may be used.
 */
const BANNED =
  /\b(setTimeout|setInterval|performance\.now|process\.hrtime|vi\.waitFor|waitUntil\(|expect\.poll|useFakeTimers|Math\.random|retry:|repeats:)/;

const files = globSync('test/**/*.ts', { exclude: ['test/support/**', 'test/full/**', '**/node_modules/**'] });
const found = files.flatMap((file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line, at) => (BANNED.test(line) ? [`${file}:${at + 1}: ${line.trim()}`] : [])),
);

for (const line of found) console.error(line);
if (found.length > 0) console.error(`${found.length} lines of tests count on luck: CONTRIBUTING.md says what to do.`);
process.exitCode = found.length === 0 ? 0 : 1;
