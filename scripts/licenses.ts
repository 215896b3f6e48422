import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';

/** Published without a text, as is their repository, honojs/middleware. They name MIT, and authors of Hono. */
const TEXT_OF: Readonly<Record<string, string>> = { '@hono/zod-openapi': 'hono', '@hono/zod-validator': 'hono' };

/** The packages that a bundle is made of, by their folders below `node_modules`. */
export function packagesIn(metafiles: readonly Metafile[]): string[] {
  const files = metafiles.flatMap(({ inputs }) => Object.keys(inputs));
  const folders = files.flatMap(
    (file) => /node_modules\/((?:.*node_modules\/)?(?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? [],
  );
  return [...new Set(folders)].toSorted();
}

/** The texts that have to go with copies of these packages. Without one of them there is no bundle. */
export async function licensesOf(root: string, packages: readonly string[]): Promise<string> {
  return (await Promise.all(packages.map((name) => licenseOf(join(root, 'node_modules'), name)))).join('\n\n');
}

async function licenseOf(modules: string, name: string): Promise<string> {
  const folder = join(modules, name);
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Record<
    'name' | 'version',
    string
  >;
  const files = textsIn(join(modules, TEXT_OF[manifest.name] ?? name));
  if (files.length === 0) throw new Error(`${name} is bundled, and has no license text`);
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
  return [`# ${manifest.name} ${manifest.version}`, ...texts.map((text) => text.trim())].join('\n\n');
}

const textsIn = (folder: string): string[] =>
  globSync(['[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]*', 'NOTICE*'], { cwd: folder })
    .toSorted()
    .map((file) => join(folder, file));
