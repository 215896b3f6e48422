import { Hono } from 'hono';
import { compress } from 'hono/compress';
import { expect, onTestFinished, test } from 'vitest';
import type { HostEnv } from '../../src/middleware/calls.ts';
import { perCall, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/gateway.ts';
import { goodAnswer } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { expectPacked, expectPlain, isPacked, receive } from './bytes.ts';
import { MARK } from './helpers.ts';

const READ = '/api/v2/subscription/';
const OVERVIEW = '/bff/v1/account-overview';

type Around = NonNullable<Parameters<typeof startGateway>[1]>['around'];

/** A gateway in a host, before an upstream with large answers. */
async function openHost(around: Around) {
  const upstream = await startUpstream();
  upstream.on(
    () => true,
    perCall((to) => goodAnswer(to, MARK)),
  );
  const gateway = await startGateway(upstream.url, { ...(around && { around }) });
  onTestFinished(() => Promise.all([gateway.close(), upstream.close()]).then(() => undefined));
  const token = secret();
  return (path: string, accepted?: string, headers = {}) => receive(gateway.url, { path, token, headers }, accepted);
}

test('below a path of a host without middleware answers are compressed', async () => {
  const take = await openHost((app) => new Hono().get('/own', (c) => c.text('own')).route('/api', app));
  for (const path of [`/api${READ}`, `/api${OVERVIEW}`]) {
    await take(path);
    expectPacked(await take(path, 'gzip'), await take(path));
  }
});

const measuring: Around = (app) =>
  new Hono()
    .use(async (c, next) => {
      await next();
      const { x_mark: mark } = (await c.res.json()) as { readonly x_mark: string };
      c.res = c.json({ length: mark.length });
    })
    .route('/', app);

test('a host’s middleware reads what it is to read, and what it answers is not compressed', async () => {
  const take = await openHost(measuring);
  const answer = await take(READ, 'gzip');
  expect(answer.text).toBe(JSON.stringify({ length: MARK.length }));
  expectPlain(answer);
});

test('hono/compress in a host compresses, with the weak ETag that then gets a 304', async () => {
  const take = await openHost((app) => new Hono().use(compress()).route('/', app));
  await take(READ);
  const [plain, packed] = [await take(READ), await take(READ, 'gzip')];
  expect([isPacked(packed), packed.text]).toEqual([true, plain.text]);
  const etag = `W/${plain.headers['etag']}`;
  expect(packed.headers).toMatchObject({ etag });
  expect(await take(READ, 'gzip', { 'if-none-match': etag })).toMatchObject({ status: 304, headers: { etag } });
});

const withHandler: Around = (app, request) =>
  new Hono<HostEnv>().get('/own', request, (c) => c.json({ text: MARK })).route('/', app);

test('what a handler of the host’s answers is left to the host', async () => {
  expectPlain(await (await openHost(withHandler))('/own', 'gzip'));
});
