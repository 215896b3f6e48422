import { setTimeout as sleep } from 'node:timers/promises';
import { allOperations } from '../../support/account-api.ts';
import { Client } from '../support/client.ts';
import { start, startGateway } from '../support/processes.ts';
import { Held } from './held.ts';

// What requests that wait for an overview cost the upstream, beside a client that asks whenever the first of its sections is
// no longer fresh. Copies are fresh for a tenth of the usual time, and nothing is answered from older ones.

const PATH = '/bff/v1/account-overview';
const ACCOUNTS = 50;
const OF_ACCOUNT = 4;
const SECONDS = 15;
const FASTER = 10;
const LEAST_FRESH_MS = 1_000;
/** So that it has ended when it is asked again. */
const MARGIN_MS = 10;
/** Times as many calls as by asking. A machine that is busy asks late. */
const MOST = 1.2;

const POLICY = JSON.stringify(
  Object.fromEntries(
    allOperations.flatMap(({ id, cache }) =>
      cache ? [[id, { fresh: cache.fresh / FASTER, stale: 0, on_error: cache.onError }]] : [],
    ),
  ),
);

interface Told {
  readonly received: number;
}

export async function callsOfUpstream(): Promise<void> {
  const upstream = await start({ script: 'test/load/support/failing-upstream.ts' });
  const env = { RATE_LIMIT_PER_MINUTE: '1000000000', UPSTREAM_BASE_URL: upstream.url, CACHE_POLICY: POLICY };
  const gateway = await startGateway({ env });
  const client = new Client(gateway.url, ACCOUNTS);
  const received = async () => ((await upstream.ask({})) as Told).received;

  const during = async (name: string, begin: (account: string) => Promise<void>) => {
    const accounts = Array.from({ length: ACCOUNTS }, (_, n) => `${name}-${n}`);
    const before = await received();
    await Promise.all(accounts.map(begin));
    return ((await received()) - before) / ACCOUNTS;
  };

  const asking = await during('asks', async (account) => {
    const endAt = performance.now() + SECONDS * 1_000;
    while (performance.now() < endAt) {
      await client.send({ path: PATH, account });
      await sleep(LEAST_FRESH_MS + MARGIN_MS);
    }
  });

  const waitingBy = (each: number) =>
    during(`waits-${each}`, async (account) => {
      const held = new Held();
      const etag = String((await client.send({ path: PATH, account })).headers['etag']);
      const headers = { Authorization: `Token ${account}`, 'If-None-Match': etag, Prefer: 'wait=30' };
      for (let n = 0; n < each; n++) await held.ask(gateway.url, PATH, headers);
      await sleep(SECONDS * 1_000);
      if (held.statuses.length > 0) throw new Error(`a wait was answered with ${held.statuses.join(', ')}`);
      held.leave();
    });

  const [one, four] = [await waitingBy(1), await waitingBy(OF_ACCOUNT)];
  console.log(
    `Upstream calls of an account in ${SECONDS} s, for ${PATH}: ${asking.toFixed(1)} where one client asks at the end of ` +
      `\`fresh\`, ${one.toFixed(1)} where one waits, ${four.toFixed(1)} where ${OF_ACCOUNT} wait`,
  );
  if (Math.max(one, four) > asking * MOST) process.exitCode = 1;
  await client.close();
  await gateway.stop();
  await upstream.stop();
}
