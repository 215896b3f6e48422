import { fromEnv, serve } from '../../src/entry/node/index.ts';
import { portico } from '../../src/portico.ts';
import { proxyAccount } from '../../src/proxy-account/index.ts';

// A host with two gateways, each with the number of workers that its word says.

for (const WORKERS of process.argv.slice(2)) {
  const gateway = portico({ ...fromEnv({ ...process.env, WORKERS }), rows: proxyAccount });
  await serve(gateway.app, gateway);
}
