import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { createAdminApp, createParts, createRefuser, type Deps } from '../../src/app.ts';
import { type Config, parseConfig } from '../../src/config.ts';
import type { LogFields, Logger } from '../../src/core/logger.ts';
import { consoleRoutes } from '../../src/entry/node/console/index.ts';
import { nodeDeps, openStore } from '../../src/entry/node/deps.ts';
import { serve, type ServeOptions } from '../../src/entry/node/server/serve.ts';
import { settingsIn } from '../../src/entry/node/settings.ts';
import type { Way } from '../../src/entry/node/way.ts';
import type { Table } from '../../src/upstream/table.ts';
import { accountTables } from './account-api.ts';

/** Every log line of the whole test run goes here; test/logs looks for secrets in it at the end. */
export const LOG_FOLDER = join(import.meta.dirname, '../../test-output/logs');

export interface LogLine extends LogFields {
  readonly level: 'info' | 'warn' | 'error';
  readonly msg: string;
}

export interface TestGateway {
  readonly url: string;
  readonly port: number;
  /** Of the admin listener, where one was asked for. */
  readonly adminUrl: string | undefined;
  /** Lines so far, oldest first. */
  readonly lines: readonly LogLine[];
  /** As SIGTERM does. */
  readonly endWaits: () => void;
  close(): Promise<void>;
}

type Parts = ReturnType<typeof createParts>;

const TURNS = 6;
const LATE_MS = 50;

interface TestGatewayOptions extends Partial<Omit<Deps, 'upstream' | 'config' | 'logger'>> {
  /** Variables of contract.md section 1, over what tests want by default. */
  readonly env?: Readonly<Record<string, string>>;
  /** By which the upstream is reached. */
  readonly way?: Way;
  /** Whether to start the admin listener too. */
  readonly admin?: boolean;
  /** The app that the gateway is mounted in, in the gateway's place. */
  readonly around?: (app: Parts['app'], request: Parts['request']) => ServeOptions['app'];
}

/** The gateway as `entry/node.ts` builds it, on a free port, with a log that is kept. */
export async function startGateway(upstreamUrl: string, options: TestGatewayOptions = {}): Promise<TestGateway> {
  const { env = {}, way = {}, admin: isWanted = false, around, ...others } = options;
  const replaced = { ...accountTables, ...others };
  const { table, overviews } = replaced;
  const config = configOf({ UPSTREAM_BASE_URL: upstreamUrl, ...env }, table);
  const lines: LogLine[] = [];
  const logger = keepingLogger(lines);
  const readiness = { isReady: () => true };
  const given = {
    table,
    overviews,
    config,
    upstream: new URL(upstreamUrl),
    logger,
    readiness,
    way,
    ...(others.clock && { clock: others.clock }),
  };
  const settings = settingsIn(env);
  const storeUrl = 'data' in settings ? settings.data.storeUrl : undefined;
  const built = nodeDeps(given, openStore(given, storeUrl));
  const deps = { ...built.deps, ...replaced };
  const { idle } = built;
  const { waitUntil } = deps;
  const shared = { refuse: createRefuser(deps), waitUntil, host: '127.0.0.1', port: 0 };
  const { app, request } = createParts(deps);
  const listener = await serve({ app: around?.(app, request) ?? app, ...shared });
  const unhooked = { ...deps, hooks: undefined };
  const ofAdmin = { ...shared, refuse: createRefuser(unhooked) };
  const adminApp = createAdminApp(unhooked, built.scrape, consoleRoutes(built));
  const admin = isWanted ? await serve({ ...ofAdmin, app: adminApp }) : undefined;
  return {
    url: listener.url,
    port: Number(new URL(listener.url).port),
    adminUrl: admin?.url,
    lines,
    endWaits: built.endWaits,
    async close() {
      built.endWaits();
      for (let turns = 0; turns < TURNS; turns++) await turn(); // those that waited have their answers
      await Promise.all([listener.drain(0), admin?.drain(0)]);
      await Promise.race([idle(), sleep(LATE_MS)]); // as at the end of a process: what is behind an answer may finish
      await built.close();
      await idle();
    },
  };
}

export function configOf(env: Readonly<Record<string, string>>, table: Table = accountTables.table): Config {
  const parsed = parseConfig(env, table);
  if ('problems' in parsed) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

/** As a line has them: what is undefined is not in it. */
const defined = <T extends object>(fields: T): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;

export function keepingLogger(lines: LogLine[]): Logger {
  mkdirSync(LOG_FOLDER, { recursive: true });
  const file = join(LOG_FOLDER, `${process.pid}.ndjson`);
  const write = (level: LogLine['level']) => (fields: LogFields, msg: string) => {
    const line = { level, ...fields, msg };
    lines.push(line);
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  };
  const [info, error] = [write('info'), write('error')];
  const request: Logger['request'] = (fields) => (fields.status < 500 ? info : error)(defined(fields), 'request');
  return { info, warn: write('warn'), error, request };
}
