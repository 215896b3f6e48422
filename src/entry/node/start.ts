import { portico } from '../../portico.ts';
import { overviews, proxyAccount } from '../../proxy-account/index.ts';
import { assignment } from './assignment.ts';
import { serve } from './index.ts';
import { runtimeOf } from './runtime.ts';
import { announce, sandboxBeside } from './sandbox.ts';
import { gatherVariables } from './variables.ts';

async function start(): Promise<void> {
  const variables = gatherVariables(process.env);
  const sandbox = assignment ? undefined : await sandboxBeside(runtimeOf(variables));
  const runtime = runtimeOf(variables, sandbox?.trial ?? assignment?.trial);
  const gateway = portico({ runtime, rows: proxyAccount, overviews });
  const served = await serve(gateway.app, gateway, sandbox?.close);
  if (sandbox) announce(served, sandbox.trial);
}

const words = process.argv.slice(2);
if (words.length === 0) void start();
else void import('../cli/gateway.ts').then(({ obey }) => obey(words));
