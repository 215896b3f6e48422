import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { compatibility, workerd } from '../../runtime/bare-worker.ts';
import { emptyFolder, killAll, run } from '../../runtime/node-gateway.ts';
import { complaintsIn } from '../../runtime/worker-gateway.ts';
import { call } from '../../support/http.ts';
import { freePort } from '../../support/ports.ts';
import { bundled } from './bundle.ts';
import { EXPECTED, openShop, OTHER, TOKEN } from './shop.ts';

/** Answers with the report on the gateway that it is told of; and to a GET, which says that it is up. */
const WORKER = `
  import { cookieFetch, reportOf } from './scenario.ts';
  export default {
    async fetch(request) {
      if (request.method === 'GET') return new Response();
      const where = await request.json();
      return Response.json(await reportOf({ ...where, fetch: cookieFetch() }));
    },
  };
`;

const configOf = (address: string) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "client", worker = (modules = [(name = "client.js", esModule = embed "client.js")], ${compatibility()})),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "${address}", http = (), service = "client")],
);
`;

/** A worker that has nothing in it but the client and the scenario. */
async function startClient() {
  const folder = emptyFolder();
  const address = `127.0.0.1:${await freePort()}`;
  writeFileSync(join(folder, 'client.js'), await bundled(WORKER, 'esm'));
  writeFileSync(join(folder, 'config.capnp'), configOf(address));
  const running = run({ cwd: folder, command: [workerd(), 'serve', 'config.capnp'] });
  const url = `http://${address}`;
  const isUp = async () => {
    if (running.hasExited()) throw new Error(running.stderr());
    expect((await call(url, { path: '/' })).status).toBe(200);
  };
  await vi.waitFor(isUp, { timeout: 40_000, interval: 25 });
  return { ...running, url };
}

afterAll(killAll);

test('the client does in workerd what it does everywhere, and one double click is one charge', async () => {
  const { url, charged } = await openShop();
  const worker = await startClient();
  const { text, json } = await call(worker.url, { path: '/', body: { url, token: TOKEN, other: OTHER } });
  expect(json ?? text + worker.stderr()).toEqual(EXPECTED);
  expect(await charged()).toBe(1);
  expect(complaintsIn(worker)).toEqual([]);
});
