import { earlier } from '../http/problem.ts';
import { expect } from 'vitest';
import { OURS, type WorkerBundle } from '../runtime/bare-worker.ts';
import { type Isolates, startIsolates } from '../runtime/worker-fleet.ts';
import { complaintsIn } from '../runtime/worker-gateway.ts';
import { secret } from '../support/secrets.ts';
import { builtRelease } from './release.ts';
import type { Version } from './versions.ts';

export const PER_MINUTE = 30;

export const newOrder = () => ({ token: secret(), key: secret('idempotency') });

export const bundleOf = async (version: Version): Promise<WorkerBundle> =>
  version === 'this version' ? OURS : (await builtRelease()).worker;

/** An isolate of each; the objects are of the first. */
export async function open(...versions: readonly Version[]): Promise<Isolates> {
  return startIsolates(await Promise.all(versions.map(bundleOf)), {
    SECRETS: secret('of-the-isolates-themselves'),
    SESSIONS: 'true',
    RATE_LIMIT_PER_MINUTE: String(PER_MINUTE),
    REQUEST_TIMEOUT_MS: '2000',
  });
}

/** A line of a request whose upstream failed is none. */
export function expectNoComplaint({ fleet }: Isolates): void {
  expect(complaintsIn(fleet)).toEqual([]);
  const faults = fleet.records().filter(({ level, msg }) => level === 'error' && msg !== 'request');
  expect(faults).toEqual([]);
}

earlier.mayAnswer = true;
