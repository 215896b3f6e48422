import { globSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/** `npm run load -- chaos --minutes 2`. A topic is a folder whose `index.ts` runs when it is imported, and reads its own options. */
const TOPICS = globSync('*/index.ts', { cwd: import.meta.dirname }).map((file) => basename(dirname(file)));
const [topic = ''] = process.argv.splice(2, 1);

if (TOPICS.includes(topic)) await import(`./${topic}/index.ts`);
else {
  console.error(`npm run load -- <topic> [options], where the topic is one of: ${TOPICS.toSorted().join(', ')}`);
  process.exitCode = 1;
}
