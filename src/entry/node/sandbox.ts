import type { RunningSandbox } from '../../../sandbox/src/node.ts';
import type { Config } from '../../config.ts';
import { checkedConfig, type Runtime } from '../../portico.ts';
import { proxyAccount } from '../../proxy-account/index.ts';
import { tableOf } from '../../upstream/table.ts';
import type { Trial } from './assignment.ts';
import type { Served } from './server/serve.ts';
import { orExit } from './variables.ts';

const SANDBOX_PORT = 8789;

/** The upstream for who has none yet; undefined where there is one, or where variables are bad, which `portico` says. */
export async function sandboxBeside(runtime: Runtime) {
  const checked = checkedConfig(runtime, tableOf(proxyAccount));
  if ('problems' in checked || checked.config.upstreamBaseUrl) return undefined;
  const started = await start(checked.config);
  const trial: Trial = { upstream: new URL(started.url), accounts: started.sandbox.accounts };
  return { trial, close: () => started.close() };
}

/** Starts it on `SANDBOX_PORT`; without that on 8789, or on any free port if that is taken. Its code is loaded only here. */
async function start({ sandboxPort: given, port, adminPort }: Config): Promise<RunningSandbox> {
  // oxlint-disable-next-line no-restricted-imports -- the only place; it is loaded late
  const { startSandbox } = await import('../../../sandbox/src/node.ts');
  const isOurs = port === SANDBOX_PORT || adminPort === SANDBOX_PORT;
  if (given === undefined) return startSandbox({ port: isOurs ? 0 : SANDBOX_PORT }).catch(() => startSandbox());
  return orExit('SANDBOX_PORT', { host: '127.0.0.1', port: given }, startSandbox({ port: given }));
}

/** Tells whoever has just started the gateway what to try. */
export function announce({ url, consoleUrl }: Served, { upstream, accounts }: Trial): void {
  console.log(`
Portico is at ${url}, with a sandbox upstream at ${upstream.origin}. Try:

  curl -i -H 'Authorization: Token ${accounts[0]?.key}' ${url}/bff/v1/account-overview

The same once more is answered from the cache. Accounts to play with:
${accounts.map(({ key, description }) => `  ${key.padEnd(28)}${description}`).join('\n')}

Documentation: ${url}/docs${consoleUrl === undefined ? '' : `\nWhat it does right now: ${consoleUrl}`}
`);
}
