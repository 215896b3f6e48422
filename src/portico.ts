import type { Hono } from 'hono';
import { createApp, type Deps } from './app.ts';
import { type Config, type ConfigProblem, parseConfig, type Variables } from './config.ts';
import type { Overview } from './gateway/overviews.ts';
import type { Env } from './middleware/request.ts';
import type { Operation } from './upstream/operation.ts';
import { type Hooks, hooksOf } from './upstream/hooks.ts';
import { type Table, tableOf } from './upstream/table.ts';

/** What is read from the variables and the tables, before a runtime gives the rest. */
export interface Given {
  readonly config: Config;
  readonly table: Table;
  readonly overviews: readonly Overview[];
  readonly hooks: Hooks;
}

/** What a runtime gives: its variables, and what is made of them there. */
export interface Runtime<Opened extends { readonly deps: Deps }> {
  readonly variables: Variables;
  readonly open: (given: Given) => Opened;
  /** Says what is wrong with the variables, and does not return. */
  readonly refuse: (problems: readonly ConfigProblem[]) => never;
}

export interface PorticoOptions<Opened extends { readonly deps: Deps }> extends Hooks {
  /** By `fromEnv` of `portico/node`, or given by `worker` of `portico/worker`. */
  readonly runtime: Runtime<Opened>;
  /** The endpoints of the upstream, by `defineRows`. */
  readonly rows: Readonly<Record<string, Operation>>;
  /** By `overview`. */
  readonly overviews?: readonly Overview[];
}

/** A gateway to one upstream. */
export interface Gateway<Opened = unknown> {
  /** A Hono app, to be served or mounted in another one. */
  readonly app: Hono<Env>;
  /** What the runtime has opened for it. */
  readonly opened: Opened;
}

/**
 * Makes a gateway. Two in one process know nothing of each other.
 * @throws TypeError in words for what tables and hooks cannot be. A bad variable ends the process on Node, and throws on Workers.
 */
export function portico<Opened extends { readonly deps: Deps }>(options: PorticoOptions<Opened>): Gateway<Opened> {
  const { runtime, rows, overviews = [] } = options;
  const table = tableOf(rows);
  const hooks = hooksOf(options);
  const parsed = parseConfig(runtime.variables, table);
  if ('problems' in parsed) return runtime.refuse(parsed.problems);
  const opened = runtime.open({ config: parsed.config, table, overviews, hooks });
  return { app: createApp(opened.deps), opened };
}
