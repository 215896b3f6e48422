import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import type { TrialAccount } from '../../../routes/docs.ts';
import type { Measured } from '../metrics/measured.ts';

/** What the primary, the process that starts workers, says to one. */
export type ToWorker =
  | { readonly kind: 'look'; readonly id: number }
  | { readonly kind: 'stop'; readonly isReplaced: boolean };

/** And what it hears. */
export type FromWorker = Started | { readonly kind: 'report'; readonly id: number; readonly report: Report } | Last;

/** It takes requests. */
export interface Started {
  readonly kind: 'started';
  readonly url: string;
  /** How many there are to be, by its configuration. */
  readonly workers: number;
  /** How long it may take to end. */
  readonly endMs: number;
}

/** It ends, and this is what it had counted. */
interface Last {
  readonly kind: 'last';
  readonly report: Report;
}

/** What one process knows of itself. */
export interface Report {
  readonly measured: Measured;
}

/** A sandbox that the primary has started. */
interface TrialText {
  readonly upstream: string;
  readonly accounts: readonly TrialAccount[];
}

/** What a worker is given when it begins. */
export interface Role {
  readonly trial?: TrialText | undefined;
  /** The environment, with what `.env` adds to it. */
  readonly environment: Readonly<Record<string, string>>;
  /** In the place of files. */
  readonly secrets: Readonly<Record<string, string>>;
}

const VARIABLE = 'PORTICO_WORKER';

/** The descriptor that a worker reads it from: the environment of a process is there for others to see. */
export const GIVEN = 4;

/** Set where this process is a worker of a primary. */
export const role: Role | undefined = roleIn(process.env[VARIABLE]);
delete process.env[VARIABLE]; // what a worker starts is none

function roleIn(mark: string | undefined): Role | undefined {
  return mark === undefined || !cluster.isWorker ? undefined : (JSON.parse(readFileSync(GIVEN, 'utf8')) as Role);
}

/** The variable that makes a process a worker. */
export const WORKER_MARK = { [VARIABLE]: '1' };
