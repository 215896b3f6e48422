import { serve } from '@hono/node-server';
import { createApp } from '../../src/app.ts';
import { parseConfig } from '../../src/config.ts';
import { nodeDeps } from '../../src/entry/node/deps.ts';
import { pinoLogger } from '../../src/entry/node/logger.ts';

/** The app as Workers run it, behind Hono's own server for Node instead of Portico's listener. */
const parsed = parseConfig(process.env);
if (!('config' in parsed) || !parsed.config.upstreamBaseUrl)
  throw new Error('variables that the gateway does not take');
const { config } = parsed;
const upstream = parsed.config.upstreamBaseUrl;
const readiness = { isReady: () => true };
const { deps } = nodeDeps({ config, upstream, logger: pinoLogger(config.logLevel), readiness });
serve({ fetch: createApp(deps).fetch, port: config.port, hostname: config.host });
