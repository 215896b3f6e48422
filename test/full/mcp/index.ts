import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installIn } from '../../../scripts/install.ts';
import { portico } from '../../../src/portico.ts';
import { fromEnv, serve } from '../../../src/entry/node/index.ts';
import { overviews, proxyAccount as rows } from '../../../src/proxy-account/index.ts';
import { startWorkerd } from '../../support/workerd.ts';

// The conformance suite of the Model Context Protocol asks `/mcp`, on Node and in workerd. Of its 32 scenarios for servers
// these ask what any server does. The others call tools, resources and prompts that only the suite's own example server has
// (`tools-call-…`, `resources-…`, `prompts-…`, `elicitation-…`, `json-schema-2020-12`), or what ours says that it does not do:
// logging, completion, and streams (`server-sse-…`).
const SCENARIOS = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'];

const FOLDER = new URL('./', import.meta.url).pathname;
installIn(FOLDER);
const suite = join(FOLDER, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

/** The suite sends no key: what is between adds one. Returns where it listens, and where it sends to. */
async function withKey() {
  const to = { url: '' };
  const server = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const onward = send(
      `${to.url}${url}`,
      { method, headers: { ...headers, authorization: 'Bearer a-key' } },
      (got) => {
        outgoing.writeHead(got.statusCode ?? 502, got.headers);
        got.pipe(outgoing);
      },
    );
    incoming.pipe(onward.on('error', () => outgoing.destroy()));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { to, at: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const RUNTIMES: Readonly<Record<string, (env: Readonly<Record<string, string>>) => Promise<{ readonly url: string }>>> =
  {
    async node(env) {
      const options = fromEnv({ ...env, PORT: '0', ADMIN_PORT: '0', LOG_LEVEL: 'silent' });
      const gateway = portico({ ...options, rows, overviews });
      return serve(gateway.app, gateway);
    },
    workerd: (env) => startWorkerd(env),
  };

let failed = 0;
for (const [name, start] of Object.entries(RUNTIMES)) {
  const { to, at } = await withKey();
  to.url = (await start({ MCP: 'true', UPSTREAM_BASE_URL: 'http://127.0.0.1:9', PUBLIC_URL: at })).url;
  for (const scenario of SCENARIOS) {
    const words = [suite, 'server', '--url', `${at}/mcp`, '--scenario', scenario];
    const { stdout } = await promisify(execFile)(process.execPath, words).catch(
      (error: { readonly stdout: string }) => {
        failed++;
        return error;
      },
    );
    console.log(`${name}, ${scenario}: ${/Passed: .*/.exec(stdout)?.[0] ?? stdout}`);
  }
}
process.exit(failed === 0 ? 0 : 1);
