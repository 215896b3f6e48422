import { fromEnv, serve } from '../../src/entry/node/index.ts';
import { portico } from '../../src/portico.ts';
import { overviews, proxyAccount } from '../../src/proxy-account/index.ts';
import { hooksFor } from './hooks-app.ts';

/** A gateway with hooks on Node. */
const { runtime } = fromEnv(process.env);
const gateway = portico({ runtime, rows: proxyAccount, overviews, ...hooksFor(runtime.variables) });

await serve(gateway.app, gateway);
