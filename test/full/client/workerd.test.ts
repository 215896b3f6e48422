import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { call } from '../../support/http.ts';
import { bundled, EXPECTED, openShop, TOKEN } from './shop.ts';

/** Answers with the report on the gateway that it is told of. */
const WORKER = `
  import { cookieFetch, reportOf } from './scenario.ts';
  export default {
    fetch: async (request) => Response.json(await reportOf({ ...(await request.json()), fetch: cookieFetch() })),
  };
`;

const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "client", worker = (modules = [(name = "client.js", esModule = embed "client.js")], compatibilityDate = "2026-10-20")),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "client")],
);
`;

const ofWrangler = createRequire(createRequire(import.meta.url).resolve('wrangler/package.json'));
const { default: program } = ofWrangler('workerd') as { readonly default: string };

/** A worker that has nothing in it but the client and the scenario. Resolves with where it listens. */
async function startClient(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-client-'));
  writeFileSync(join(folder, 'client.js'), await bundled(WORKER, 'esm'));
  writeFileSync(join(folder, 'config.capnp'), CONFIG);
  const stdio = ['ignore', 'inherit', 'inherit', 'pipe'] as const;
  const child = spawn(program, ['serve', 'config.capnp', '--control-fd=3'], { cwd: folder, stdio: [...stdio] });
  onTestFinished(() => void child.kill('SIGKILL'));
  for await (const line of createInterface({ input: child.stdio[3] as Readable })) {
    const { event, port } = JSON.parse(line) as { readonly event: string; readonly port: number };
    if (event === 'listen') return `http://127.0.0.1:${port}`;
  }
  throw new Error('workerd has ended');
}

test('the client does in workerd what it does everywhere, and one double click is one charge', async () => {
  const { url, charged } = await openShop();
  const worker = await startClient();
  const { json, text } = await call(worker, { path: '/', body: { url, token: TOKEN } });
  expect(json ?? text).toEqual(EXPECTED);
  expect(charged()).toBe(1);
});
