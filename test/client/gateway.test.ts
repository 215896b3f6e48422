import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type ClientOptions, createClient, keepCopies, streamOverview, touches } from '../../client/src/index.ts';
import { routes } from '../../client/src/table.ts';
import { allOperations, allOverviews, type OperationId } from '../support/account-api.ts';
import { exampleBody, exampleInput } from '../support/examples.ts';
import { openGateway } from '../support/gateway.ts';
import { secret } from '../support/secrets.ts';
import { invalidatedReads, partedBy, writeIds } from '../support/table.ts';
import { answer } from '../support/upstream.ts';
import { callTo, thrownBy } from './helpers.ts';

// The client, of the gateway itself: both in this process.

const ORIGIN = 'http://gateway.test';
const gateway = openGateway();
const { upstream } = gateway;

/** As `fetch` does. */
const fetchHere: typeof fetch = (address, init) => {
  const answered = gateway.app.request((address as string).replace(ORIGIN, ''), init);
  const { promise: left, reject } = Promise.withResolvers<never>();
  init?.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error));
  return Promise.race([answered, left]);
};

/** A client of an account of its own. */
function open(options: ClientOptions = {}) {
  const token = secret();
  return { token, portico: createClient({ url: ORIGIN, token, fetch: fetchHere, ...options }) };
}

/** The example request as the client is given it: one object, of what stands in path, query and body. */
function inputOf(id: OperationId): object | undefined {
  const { path, query, body } = exampleInput(id);
  const template = routes[id].replace('?', '').split(' ')[1] ?? '';
  const pattern = new RegExp(`^${template.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
  const parts = { ...pattern.exec(path)?.groups, ...Object.fromEntries(new URLSearchParams(query)) };
  const input = { ...parts, ...(body !== undefined && (JSON.parse(body) as object)) };
  return Object.keys(input).length > 0 || body !== undefined ? input : undefined;
}

/** Without the number of the account's version, which is that of nobody where no token is sent. */
const bare = (value: unknown) => value && { ...value, x_version: 0 };

test.for(allOperations.map(({ id }) => id))('%s reaches the upstream as its example request does', async (id) => {
  const { token, portico } = open();
  const { path, query } = exampleInput(id);
  const direct = await gateway.ask(id, { token: secret(), path: query === undefined ? path : `${path}?${query}` });
  const got = await callTo(portico, id)(inputOf(id));
  expect(bare(got)).toEqual(direct.text === '' ? undefined : bare(direct.json));
  const [first, second] = upstream.callsTo(id).map((call) => ({
    line: `${call.method} ${call.target}`,
    type: call.headers['content-type'],
    body: call.body && (JSON.parse(call.body) as unknown),
  }));
  expect(second).toEqual(first);
  const [before, after] = upstream.callsTo(id).map((call) => call.token);
  expect(after).toBe(before && token);
});

test('every operation of the document is a method, but for calls about the gateway', async () => {
  const { json } = await gateway.call('/openapi.json');
  type Item = { operationId: string; tags: string[]; requestBody?: object; parameters?: { in: string }[] };
  const { paths } = json as { paths: Record<string, Record<string, Item>> };
  const all = Object.entries(paths).flatMap(([path, items]) =>
    Object.entries(items).map(([method, item]) => ({ path, method, item })),
  );
  const calls = all.filter(({ item }) => !item.tags.includes('About'));
  const marked = calls.map(({ path, method, item }) => {
    const takesNone = /^(post|patch|put)$/.test(method) && !item.requestBody;
    return [item.operationId, `${method.toUpperCase()} ${path}${takesNone ? '?' : ''}`];
  });
  expect(routes).toEqual(Object.fromEntries(marked));
  for (const { item, path } of calls)
    // input would have to stand in two places
    if (item.requestBody) expect(item.parameters?.some((one) => one.in === 'query') ?? false, path).toBe(false);
});

test.for(['getAccountOverview', 'getBillingOverview', 'getReferralOverview'] as const)(
  '%s resolves with what the gateway answers, and its stream has the same, line by line',
  async (id) => {
    const { token, portico } = open();
    const overview = (await callTo(portico, id)()) as { data: object; meta: { complete: boolean } };
    const { json } = await gateway.call(routes[id].slice(4), { token });
    expect([overview, overview.meta.complete]).toEqual([json, true]);
    const lines: Record<string, unknown> = {};
    for await (const line of streamOverview(portico, id as 'getAccountOverview'))
      lines[line.section] = 'data' in line ? line.data : line.error;
    expect(lines).toEqual(overview.data);
  },
);

test('after an answer with the changed sections only, the next one is whole', async () => {
  const { portico } = open({ copies: keepCopies() });
  const names = async (options = {}) => Object.keys((await portico.getBillingOverview({}, options)).data);
  const all = await names();
  upstream.next('getSubscription', answer(200, exampleBody('getSubscription', { plan: 7 })));
  expect(await names({ fresh: true, headers: { Prefer: 'changed-sections' } })).toEqual(['subscription']);
  expect(await names()).toEqual(all);
});

/** What only Node's own fetch and its sockets show. */
async function serve(listener: RequestListener) {
  const server = createServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return createClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: 'a', retries: 0 });
}

test('an abort hangs up, under way and in the middle of the body', async () => {
  for (const begin of ['', '{"id":10']) {
    const [arrived, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const portico = await serve((_, response) => {
      response.on('close', gone.resolve);
      if (begin) response.writeHead(200, { 'content-length': 100 }).write(begin);
      arrived.resolve();
    });
    const controller = new AbortController();
    const thrown = thrownBy(portico.getSubscription(undefined, { signal: controller.signal }));
    await arrived.promise;
    controller.abort('left');
    expect(await thrown).toBe('left');
    await gone.promise;
  }
});

test.each(writeIds)('`touches` names all that %s invalidates, and the overviews of that', (write) => {
  const reads: readonly string[] = [...invalidatedReads(write), ...partedBy(write)];
  const shown = allOverviews.filter(({ sections }) =>
    Object.values(sections).some(({ read }) => reads.includes(read.id)),
  );
  const changed = [...reads, ...shown.map(({ id }) => id)];
  if (changed.length > 0) expect(touches(write as 'purchasePlan').toSorted()).toEqual(changed.toSorted());
});
