import './node/signals-taken.ts';
import { portico } from '../portico.ts';
import { overviews, proxyAccount } from '../proxy-account/index.ts';
import { fromEnv, serve } from './node/index.ts';
import { announce, sandboxBeside } from './node/sandbox.ts';

async function start(): Promise<void> {
  const sandbox = await sandboxBeside(process.env);
  const gateway = portico({ ...fromEnv(process.env, sandbox?.trial), rows: proxyAccount, overviews });
  const served = await serve(gateway.app, gateway, sandbox?.close);
  if (sandbox) announce(served, sandbox.trial);
}

const words = process.argv.slice(2);
if (words.length === 0) void start();
else void import('./cli/gateway.ts').then(({ obey }) => obey(words));
