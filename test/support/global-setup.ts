import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { LOG_FOLDER } from './gateway.ts';
import { faultsIn } from './leaks.ts';
import { hasRedis, relyOn, startRedis, type TestRedis } from './redis.ts';

const RUN = /^run-(\d+)$/;
let redis: TestRedis | undefined;
const marker = join(LOG_FOLDER, `run-${process.pid}`);

/**
 * Before the first test of a run: what test/logs reads at the end is then not of an earlier one. What a run beside
 * this one has written stays, since it has yet to read it. All files share one Redis: accounts are new in each test.
 */
export async function setup({ provide }: TestProject): Promise<void> {
  mkdirSync(LOG_FOLDER, { recursive: true });
  const files = readdirSync(LOG_FOLDER);
  const oldest = Math.min(...files.filter(isOfAnotherRun).map(changedAt));
  for (const file of files) {
    if (changedAt(file) < oldest) rmSync(join(LOG_FOLDER, file), { recursive: true, force: true });
  }
  writeFileSync(marker, '');
  if (hasRedis) redis = await startRedis();
  provide('redis', redis && { url: redis.url, token: await relyOn(redis) });
}

/** @throws Error where a gateway of the run has logged, or its console has shown, a secret or what nobody has listed */
export async function teardown(): Promise<void> {
  await redis?.close();
  const faults = faultsIn(LOG_FOLDER);
  rmSync(marker, { force: true });
  if (faults.length > 0) throw new Error(faults.slice(0, 20).join('\n'));
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
