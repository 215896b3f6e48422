import { Hono } from 'hono';
import { sandboxAccounts, type SandboxAccount } from './accounts.ts';
import { Calls } from './calls.ts';
import { createClock } from './clock.ts';
import { mountControl, type Controls } from './control.ts';
import { Faults } from './faults.ts';
import { mountOperations } from './mount.ts';
import { createWorld } from './seed/world.ts';
import type { World } from './state.ts';
import type { Instant } from './time.ts';

export interface SandboxOptions {
  /** Milliseconds since 1970; the sandbox's clock starts from it. */
  readonly now?: () => number;
  /** The time for which the data is seeded, from the time of the first call; by default that itself. */
  readonly seedTime?: (firstCallAt: Instant) => Instant;
  readonly sleep?: (ms: number) => Promise<void>;
  /** Cuts the connection of a request, where the runtime can: gets what the runtime gave to `app.fetch`. */
  readonly cutConnection?: (env: unknown) => void;
}

export interface Sandbox extends Controls {
  readonly app: Hono;
  readonly accounts: readonly SandboxAccount[];
}

const sleepByTimer = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

/** The upstream of `upstream-api.md`, with its state in memory. */
export function createSandbox(options: SandboxOptions = {}): Sandbox {
  const clock = createClock(options.now ?? Date.now);
  const calls = new Calls();
  const faults = new Faults();
  // Made when first needed: Workers have no clock before the first request.
  let seeded: World | null = null;
  const world = () => (seeded ??= createWorld(options.seedTime?.(clock.now()) ?? clock.now()));
  // Seeded before the clock moves: otherwise nothing would be older afterwards.
  const moveClock = (move: () => void) => {
    world();
    move();
  };
  const sandbox: Sandbox = {
    app: new Hono(),
    accounts: sandboxAccounts,
    calls: () => calls.all,
    clearCalls: () => calls.clear(),
    addFault: (fault) => faults.add(fault),
    clearFaults: () => faults.clear(),
    now: () => Math.floor(clock.now() / 1000),
    advanceClock: (seconds) => moveClock(() => clock.advance(seconds)),
    setClock: (epochMs) => moveClock(() => clock.set(epochMs)),
    reset: () => {
      clock.reset();
      faults.clear();
      calls.clear();
      seeded = null;
    },
  };
  mountControl(sandbox.app, sandbox);
  mountOperations(sandbox.app, {
    calls,
    faults,
    clock,
    world,
    sleep: options.sleep ?? sleepByTimer,
    cutConnection: options.cutConnection,
  });
  return sandbox;
}
