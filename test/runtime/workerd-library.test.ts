import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { ODYSSEY } from '../library/library.ts';
import { accountWordsIn } from '../library/words.ts';
import { scriptLibrary } from '../library/world.ts';
import { byCookie, cookieIn, SESSION, signInWith } from '../sessions/helpers.ts';
import { call, type CallOptions } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { startBareWorker } from './bare-worker.ts';
import { killAll } from './node-gateway.ts';
import { complaintsIn, type WorkerGateway } from './worker-gateway.ts';

describe('a library of books on workerd', () => {
  const token = secret();
  let upstream: ScriptedUpstream;
  let worker: WorkerGateway;
  const ask = (path: string, options: Partial<CallOptions> = {}) => call(worker.url, { path, token, ...options });

  const isKept = async () => expect((await ask('/v1/books')).headers['cache-status']).toMatch(/hit/);

  beforeAll(async () => {
    upstream = await startUpstream();
    scriptLibrary(upstream, token);
    const variables = {
      UPSTREAM_BASE_URL: upstream.url,
      SESSIONS: 'true',
      SECRETS: secret('of-the-library-on-workerd'),
    };
    worker = await startBareWorker(variables, { entry: 'test/runtime/library-worker.ts' });
    // The objects of one that has just started may be too slow: a read is then not kept.
    await vi.waitFor(isKept, { timeout: 40_000, interval: 100 });
  });

  afterAll(async () => {
    await killAll();
    await upstream.close();
  });

  it('reads with the last slash and without, links to itself, and has what was written', async () => {
    const list = await ask('/v1/books/?page=1');
    expect(list.json).toMatchObject({ next: `${worker.url}/v1/books?page=2` });
    expect((await ask(`/v1/books/${ODYSSEY}/`)).json).toMatchObject({ on_loan: false });
    expect((await ask(`/v1/books/${ODYSSEY}/loans`, { body: { weeks: 3 } })).status).toBe(201);
    expect((await ask(`/v1/books/${ODYSSEY}`)).json).toMatchObject({ on_loan: true });
    expect((await ask('/v1/books')).json).toMatchObject({ results: [{ isbn: ODYSSEY, on_loan: true }, {}] });
    expect((await ask('/bff/v1/shelf')).json).toMatchObject({ data: { of_the_month: { on_loan: true } } });
  });

  it('refuses what is not there', async () => {
    const refused = await ask('/v1/books', { method: 'DELETE' });
    expect([refused.status, refused.headers['allow']]).toEqual([405, 'GET, HEAD']);
    expect((await ask('/v1/films')).json).toMatchObject({ code: 'unknown_endpoint' });
    expect((await ask('/v1/books/none')).json).toMatchObject({ code: 'lost', title: 'The book is lost' });
  });

  it('begins sessions by its login', async () => {
    const body = { reader: 'penelope', password: secret('password') };
    const begun = await call(worker.url, signInWith('', { path: `${SESSION}/enter`, body }));
    expect(begun.status).toBe(201);
    const overview = await call(worker.url, byCookie(cookieIn(begun), { path: '/bff/v1/shelf' }));
    expect(overview.status).toBe(200);
  });

  it('describes itself', async () => {
    const { text } = await ask('/openapi.json');
    expect(text).toContain('"operationId":"lendBook"');
    expect(accountWordsIn(text)).toEqual([]);
  });

  it('has heard no complaint of workerd', () => {
    expect(complaintsIn(worker)).toEqual([]);
  });
});
