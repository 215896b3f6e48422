import type { Hono, MiddlewareHandler } from 'hono';
import { createParts, type Deps } from './app.ts';
import { type Config, type ConfigProblem, type ParsedConfig, parseConfig, type Variables } from './config.ts';
import type { Overview } from './gateway/overview.ts';
import type { HostEnv } from './http/calls.ts';
import type { Env } from './http/request.ts';
import type { Operation } from './upstream/operation.ts';
import type { Hooks } from './upstream/hooks.ts';
import { type Table, tableOf } from './upstream/table.ts';

/** What is read from the variables and the tables, before a runtime gives the rest. */
export interface Given {
  readonly config: Config;
  readonly table: Table;
  readonly overviews: readonly Overview[];
  readonly hooks: Hooks;
}

/** What a runtime makes of the variables and the tables. */
export interface Opened {
  readonly deps: Deps;
  readonly drain: () => Promise<void>;
}

/** Where a gateway runs: its variables, and what is made of them there. */
export interface Runtime {
  readonly variables: Variables;
  /** What is wrong with variables that are not Portico's own. */
  readonly otherProblems?: () => readonly ConfigProblem[];
  readonly open: (given: Given) => Opened;
  /** Says what is wrong with the variables, and does not return. */
  readonly refuse: (problems: readonly ConfigProblem[]) => never;
}

export interface PorticoOptions extends Hooks {
  /** Made by `fromEnv` of `portico/node`, or given by `worker` of `portico/worker`. */
  readonly runtime: Runtime;
  /** The endpoints of the upstream, by `defineRows`. */
  readonly rows: Readonly<Record<string, Operation>>;
  /** Overviews, each made by `overview`. */
  readonly overviews?: readonly Overview[];
  /** Tools for agents at `/mcp`, in place of the variable `MCP`. */
  readonly mcp?: boolean;
}

/** A gateway to one upstream. */
export interface Gateway {
  /** A Hono app, to be served or mounted in another one. */
  readonly app: Hono<Env>;
  /** Middleware for handlers of the host's: with it `c.var.portico` reads and writes for their client. */
  readonly request: MiddlewareHandler<HostEnv>;
  /** Waits for what outlives its request, and closes connections. Where `serve` serves, it does so itself. */
  readonly drain: () => Promise<void>;
  /** What the runtime has opened for it, for `serve`. */
  readonly opened: Opened;
}

/**
 * Makes a gateway. Two in one process know nothing of each other.
 * @throws TypeError in words for what tables cannot be. A bad variable ends the process on Node, and throws on Workers.
 */
export function portico({ runtime, rows, overviews = [], mcp, ...hooks }: PorticoOptions): Gateway {
  const table = tableOf(rows);
  const checked = checkedConfig(runtime, table);
  if ('problems' in checked) return runtime.refuse(checked.problems);
  const config = { ...checked.config, mcp: mcp ?? checked.config.mcp };
  const opened = runtime.open({ config, table, overviews, hooks });
  try {
    return { ...createParts(opened.deps), drain: () => opened.drain(), opened };
  } catch (error) {
    void opened.drain().catch(() => undefined); // a connection to the store would keep the process alive
    throw error;
  }
}

/** Reads all variables of a runtime. Opens and ends nothing. */
export const checkedConfig = ({ variables, otherProblems }: Runtime, table: Table): ParsedConfig =>
  parseConfig(variables, table, otherProblems?.());
