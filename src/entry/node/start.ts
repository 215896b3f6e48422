import { portico } from '../../portico.ts';
import { overviews, proxyAccount } from '../../proxy-account/index.ts';
import { assignment } from './assignment.ts';
import { serve } from './listen.ts';
import { runtimeOf } from './runtime.ts';
import { announce, sandboxBeside } from './sandbox.ts';
import { gatherVariables } from './variables.ts';

/** The program: it serves, or does what the words after its name say. */
export async function main(): Promise<void> {
  const words = process.argv.slice(2);
  if (words.length > 0) return (await import('../cli/words.ts')).obey(words);
  const gathered = gatherVariables(process.env);
  const sandbox = assignment ? undefined : await sandboxBeside(runtimeOf(gathered));
  const runtime = runtimeOf(gathered, sandbox?.trial ?? assignment?.trial);
  const gateway = portico({ runtime, rows: proxyAccount, overviews });
  const served = await serve(gateway.app, gateway, sandbox?.close);
  if (sandbox) announce(served, sandbox.trial);
}
