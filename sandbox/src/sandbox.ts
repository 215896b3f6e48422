import { Hono } from 'hono';
import { sandboxAccounts } from './accounts.ts';
import { Calls } from './calls.ts';
import { mountControl } from './control.ts';
import { type FaultInput, Faults } from './faults.ts';
import { mountOperations } from './mount.ts';
import { createWorld } from './seed/accounts.ts';
import type { World } from './state.ts';
import type { Instant } from './time.ts';

export interface SandboxOptions {
  /** The sandbox's clock starts from it. */
  readonly now?: () => Instant;
  readonly sleep?: (ms: number) => Promise<void>;
  /** Cuts the connection of a request, where the runtime can: gets what the runtime gave to `app.fetch`. */
  readonly cutConnection?: (env: unknown) => void;
}

const sleepByTimer = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

/** The upstream of `upstream-api.md`, with its state in memory. */
export function createSandbox({ now: base = Date.now, sleep = sleepByTimer, cutConnection }: SandboxOptions = {}) {
  const calls = new Calls();
  const faults = new Faults();
  let movedBy = 0;
  const now = () => Math.floor(base() + movedBy);
  // Made when first needed: Workers have no clock before the first request.
  let seeded: World | null = null;
  const world = () => (seeded ??= createWorld(now()));
  const setClock = (to: Instant) => {
    world(); // seeded before the clock moves: otherwise nothing would be older afterwards
    movedBy += to - now();
  };
  const reset = () => {
    movedBy = 0;
    faults.clear();
    calls.clear();
    seeded = null;
  };
  const app = new Hono();
  mountControl(app, { calls, faults, now, setClock, reset });
  mountOperations(app, { calls, faults, world, now, sleep, cutConnection });
  return {
    app,
    accounts: sandboxAccounts,
    /** Calls so far, oldest first. */
    calls: () => calls.all,
    addFault: (fault: FaultInput) => faults.add(fault),
    setClock,
    advanceClock: (seconds: number) => setClock(now() + seconds * 1000),
  };
}
