import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOG_FOLDER } from './gateway.ts';

const RUN = /^run-(\d+)$/;
const marker = join(LOG_FOLDER, `run-${process.pid}`);

/**
 * Before the first test of a run: what test/logs reads at the end is then not of an earlier one. What a run beside
 * this one has written stays, since it has yet to read it.
 */
export function setup(): void {
  mkdirSync(LOG_FOLDER, { recursive: true });
  const files = readdirSync(LOG_FOLDER);
  const oldest = Math.min(...files.filter(isOfAnotherRun).map(changedAt));
  for (const file of files) {
    if (changedAt(file) < oldest) rmSync(join(LOG_FOLDER, file), { recursive: true, force: true });
  }
  writeFileSync(marker, '');
}

export function teardown(): void {
  rmSync(marker, { force: true });
}

/** Whether the file marks a run whose process is still there. */
function isOfAnotherRun(file: string): boolean {
  const pid = Number(RUN.exec(file)?.[1] ?? process.pid);
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Milliseconds since 1970; for ever ago when it is gone by now. */
const changedAt = (file: string): number => statSync(join(LOG_FOLDER, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
