import { pathToFileURL } from 'node:url';
import type { Plugin } from 'esbuild';

/** What a stub lets through of each module: zod answers `minLength`, `format` and their like with it. */
const kept = ['aggregateChecks'];

const stubs = /\/zod\/v4\/core\/(to-json-schema|json-schema-processors)\.js$/;
const REAL = '?real';

/**
 * Leaves zod's way to JSON Schema out of a bundle: every schema can be asked for its own, so no bundler sees that nobody
 * asks. Asked all the same, it throws.
 */
export const withoutJsonSchema: Plugin = {
  name: 'without-json-schema',
  setup(build) {
    build.onLoad({ filter: stubs }, async ({ path, suffix }) => {
      if (suffix === REAL) return undefined;
      const names = Object.keys((await import(pathToFileURL(path).href)) as Record<string, unknown>);
      return { contents: [REFUSALS, ...names.map((name) => exportOf(name, path))].join('\n') };
    });
  },
};

const REFUSALS = `const refuse = () => { throw new Error('This bundle has no JSON Schema.'); };
const method = () => refuse;`;

function exportOf(name: string, path: string): string {
  if (kept.includes(name)) return `export { ${name} } from ${JSON.stringify(path + REAL)};`;
  return `export { ${name.startsWith('create') ? 'method' : 'refuse'} as ${name} };`;
}
