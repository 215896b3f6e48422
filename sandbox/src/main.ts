import { startSandbox } from './node.ts';

const { HOST = '127.0.0.1', SANDBOX_PORT = '8789' } = process.env;

const { sandbox, url } = await startSandbox({ host: HOST, port: Number(SANDBOX_PORT) }).catch((error: Error) => {
  console.error(`SANDBOX_PORT: cannot listen on ${HOST}:${SANDBOX_PORT}: ${error.message}`);
  return process.exit(1);
});

const width = Math.max(...sandbox.accounts.map(({ key }) => key.length));

console.log(`Sandbox upstream on ${url}

Accounts (Authorization: Token <key>):
${sandbox.accounts.map(({ description, key }) => `  ${key.padEnd(width)}  ${description}`).join('\n')}

Social login: provider "sandbox", code "sandbox-code-<name>"; any new name can register.
Control: POST ${url}/_sandbox/faults, /_sandbox/clock, /_sandbox/reset; GET /_sandbox/calls; DELETE /_sandbox/faults, /_sandbox/calls

  curl -H 'Authorization: Token ${sandbox.accounts[0]?.key}' ${url}/api/v2/subscription/`);
