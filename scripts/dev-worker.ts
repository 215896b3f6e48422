import { spawn } from 'node:child_process';
import { sandboxAccounts } from '../sandbox/src/accounts.ts';

/** `wrangler dev`, with what `npm start` prints too: a first call and the sandbox's accounts. `PORT` is 8787 unless set. */
const { PORT = '8787' } = process.env;
const wrangler = spawn('wrangler', ['dev', '--port', PORT, ...process.argv.slice(2)], {
  stdio: ['inherit', 'pipe', 'inherit'],
  env: { ...process.env, WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' },
});
wrangler.stdout.setEncoding('utf8');
wrangler.stdout.on('data', (text: string) => {
  process.stdout.write(text);
  const [, url] = /Ready on (http\S+)/.exec(text) ?? [];
  if (url !== undefined) announce(url);
});
wrangler.once('exit', (code) => process.exit(code ?? 1));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => wrangler.kill(signal));

function announce(url: string): void {
  const [first] = sandboxAccounts;
  console.log(`
Try:

  curl -i -H 'Authorization: Token ${first.key}' ${url}/bff/v1/account-overview

Accounts to play with:
${sandboxAccounts.map(({ key, description }) => `  ${key.padEnd(28)}${description}`).join('\n')}

Documentation: ${url}/docs
`);
}
