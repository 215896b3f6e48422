import { closeSync, readFileSync } from 'node:fs';
import type { TrialAccount } from '../../routes/docs.ts';

/** An upstream to try the gateway with. */
export interface Trial {
  readonly upstream: URL;
  readonly accounts: readonly TrialAccount[];
}

/** What the first of several processes (`WORKERS`) tells those that it starts. */
export interface Assignment {
  /** The port at which all listen: with `PORT=0` the first has picked one. */
  readonly port: number;
  /** Names accounts where there are no `SECRETS`. */
  readonly secret: string;
  /** The zero of the machine's monotonic clock, in milliseconds since 1970: so all processes have the same time. */
  readonly zero: number;
  /** Texts of files of the configuration by path, as they were at the start. */
  readonly files: Readonly<Record<string, string>>;
  /** The sandbox, if there is one, runs in the first. */
  readonly trial?: Trial | undefined;
}

/** In a worker: the descriptor from which it reads its assignment. */
export const VARIABLE = 'PORTICO_WORKER';

const given = process.env[VARIABLE];
delete process.env[VARIABLE]; // what a host starts is no worker of ours

/** Undefined in the first process, or the only one. What has no channel to another process was not started by one of ours. */
export const assignment: Assignment | undefined =
  given === undefined || process.send === undefined ? undefined : read(Number(given));

function read(descriptor: number): Assignment {
  const text = readFileSync(descriptor, 'utf8'); // when all is there, or the first process has gone
  closeSync(descriptor);
  if (!process.connected || text === '') endAtOnce();
  process.on('disconnect', endAtOnce);
  const { trial, ...rest } = JSON.parse(text) as Assignment; // written by `startedWith`
  return { ...rest, trial: trial && { ...trial, upstream: new URL(trial.upstream) } };
}

/** The first process has gone. A worker alone would serve without the notes of the others, and nobody could end it. */
function endAtOnce(): never {
  return process.exit(1);
}

const monotonic = () => Number(process.hrtime.bigint()) / 1e6;

/** The same in all processes. */
export const ZERO = assignment?.zero ?? performance.timeOrigin + performance.now() - monotonic();

/** What is added to `performance.now()`, which begins with the process, to get the milliseconds since 1970. */
export const ORIGIN = assignment ? ZERO + monotonic() - performance.now() : performance.timeOrigin;
