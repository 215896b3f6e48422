import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type Kind, isInstalled, startBalancer } from '../support/balancers.ts';
import { openWorld } from '../support/world.ts';
import { listenLocally } from '../support/ports.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const portOf = (gateway: Server) => (gateway.address() as AddressInfo).port;

/** Stands for a gateway: says by what port it was asked. */
async function startGateway(): Promise<Server> {
  const gateway = createServer((_, response) => response.end(String(portOf(gateway))));
  await listenLocally(gateway);
  closing.push(() => leave(gateway));
  return gateway;
}

async function leave(gateway: Server): Promise<void> {
  if (!gateway.listening) return;
  const closed = once(gateway, 'close');
  gateway.close();
  gateway.closeAllConnections();
  await closed;
}

async function setUp(kind: Kind) {
  const gateways = [await startGateway(), await startGateway()];
  const balancer = await startBalancer(
    kind,
    gateways.map((gateway) => `127.0.0.1:${portOf(gateway)}`),
  );
  closing.unshift(() => balancer.stop());
  /** By which gateway it is answered. */
  const ask = async (headers: Readonly<Record<string, string>>): Promise<number> => {
    const answer = await fetch(balancer.url, { headers });
    expect(answer.status).toBe(200);
    return Number(await answer.text());
  };
  return { gateways, ask };
}

/** An odd number: where they just took turns, each would meet the other gateway the second time. */
const ACCOUNTS = Array.from({ length: 41 }, (_, n) => `account-${n}`);
const byHeader = (account: string) => ({ Authorization: `Token ${account}` });
const bySession = (session: string) => ({ Cookie: `theme=dark; __Host-Http-portico=${session}; a=${Math.random()}` });

describe.each<Kind>(['haproxy', 'nginx'])('%s', (kind) => {
  const isHere = isInstalled(kind) || process.env['CI'] !== undefined;
  const skipped = isHere ? '' : ` (skipped: no ${kind} is installed)`;

  test.skipIf(!isHere).each([
    ['header', byHeader],
    ['session', bySession],
  ])(`sends an account to one of two gateways, by %s${skipped}`, async (_, by) => {
    const { gateways, ask } = await setUp(kind);
    const met = new Map<string, number>();
    for (const account of ACCOUNTS) met.set(account, await ask(by(account)));
    expect(new Set(met.values())).toEqual(new Set(gateways.map(portOf)));
    for (const account of ACCOUNTS) expect([account, await ask(by(account))]).toEqual([account, met.get(account)]);
  });

  test.skipIf(!isHere)(`goes by the header where a request has both, else by the address${skipped}`, async () => {
    const { ask } = await setUp(kind);
    const [byAddress, account] = [await ask({}), await ask(byHeader('account'))];
    for (const session of ACCOUNTS) {
      expect(await ask({ ...bySession(session), ...byHeader('account') })).toBe(account);
      expect(await ask({ Cookie: `other__Host-Http-portico=${session}` })).toBe(byAddress);
    }
  });

  test.skipIf(!isHere)(`sends it to the other one when the first is away${skipped}`, async () => {
    const { gateways, ask } = await setUp(kind);
    const met = await ask(byHeader('account'));
    for (const gateway of gateways.filter((one) => portOf(one) === met)) await leave(gateway);
    const [other] = gateways.filter(({ listening }) => listening).map(portOf);
    expect(await ask(byHeader('account'))).toBe(other);
    expect(await ask(byHeader('account'))).toBe(other);
  });

  test.skipIf(!isHere)(`finds a gateway by HTTP/1.0 without a Host, too${skipped}`, async () => {
    const { gateway } = await openWorld();
    const changes = {
      'http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host gateway': '', // what is left is `option httpchk`
      'proxy_http_version 1.1;': 'proxy_http_version 1.0;',
      'proxy_set_header Host $http_host;': 'proxy_set_header Host "";',
    };
    const balancer = await startBalancer(kind, [`127.0.0.1:${gateway.port}`, '127.0.0.1:1'], changes);
    closing.unshift(() => balancer.stop());
    expect((await fetch(`${balancer.url}/livez`)).status).toBe(200);
  });
});
