import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** What `npm pack` has packed. */
    tarball: string;
  }
}

/** Packs once for all files: it builds in one folder. */
export function setup({ provide }: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'portico-tarball-'));
  const args = ['pack', '--pack-destination', folder, '--loglevel=error'];
  const printed = execFileSync('npm', args, { cwd: join(import.meta.dirname, '../../..'), encoding: 'utf8' });
  provide('tarball', join(folder, printed.trim().split('\n').at(-1) ?? ''));
  return () => rmSync(folder, { recursive: true, force: true });
}
