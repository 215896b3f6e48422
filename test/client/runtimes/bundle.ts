import { build } from 'esbuild';

/** This text, and all that it imports from here, as one file for a runtime that is no Node. */
export async function bundled(contents: string, format: 'esm' | 'iife'): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: import.meta.dirname, loader: 'ts' },
    write: false,
    bundle: true,
    format,
    // Knows no modules of Node: an import of one is an error.
    platform: 'neutral',
    target: 'es2022',
    logLevel: 'warning',
  });
  return outputFiles[0]!.text;
}
