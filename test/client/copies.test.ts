import { describe, expect, test } from 'vitest';
import {
  type CallOptions,
  type ClientOptions,
  createClient,
  keepCopies,
  type Portico,
} from '../../client/src/index.ts';
import { openOverviews } from '../overviews/helpers.ts';
import { barrier, type Call, hold, json, perCall, reply, type Step } from '../support/scripted-upstream.ts';
import { bodyOf } from '../support/marked.ts';
import { openClient, openStandIn, passPauses, problem, SUBSCRIPTION } from './helpers.ts';

const ETAG = '"the same for all"';

/** Its whole answer, or 304 to who has the ETag. Says whose it is, which the ETag does not. */
const revalidated: Step = perCall(({ headers, target }) =>
  headers['if-none-match'] === ETAG
    ? json(304, '', { etag: ETAG })
    : json(200, { of: headers['authorization'] ?? headers['cookie'], target }, { etag: ETAG }),
);

async function openReader(options: ClientOptions = {}) {
  const standIn = await openStandIn({ copies: keepCopies(), ...options });
  standIn.gateway.on(() => true, revalidated);
  return standIn;
}

const isConditional = ({ headers }: Call) => 'if-none-match' in headers;

/** One of many things to read. */
const read = (portico: Portico, id: number, options?: CallOptions) => portico.getTransaction({ id }, options);

describe('a second read', () => {
  test('sends the ETag of the first, and gives back what that one said', async () => {
    const { gateway, portico } = await openReader();
    const answers = [await read(portico, 1), await read(portico, 1), await read(portico, 1)];
    expect(gateway.calls.map(isConditional)).toEqual([false, true, true]);
    expect(answers).toEqual(Array(3).fill(answers[0]));
  });

  test('is answered from the cache of the gateway, as the first would be', async () => {
    const { portico, upstream } = await openClient({}, { copies: keepCopies() });
    upstream.on(SUBSCRIPTION, ...[1, 2].map((mark) => json(200, bodyOf('getSubscription', mark))));
    const first = await portico.getSubscription();
    expect(await portico.getSubscription()).toEqual(first);
    expect(upstream.calls).toHaveLength(1);
  });

  test('has nothing of what its caller has done to the first', async () => {
    const { portico: reader, gateway } = await openStandIn({ copies: keepCopies() });
    gateway.on(
      () => true,
      json(200, { results: [{ id: 2 }, { id: 1 }] }, { etag: ETAG }),
      json(304, '', { etag: ETAG }),
    );
    for (let time = 0; time < 3; time += 1) {
      const { results } = await reader.listTransactions();
      expect(results).toEqual([{ id: 2 }, { id: 1 }]);
      results.pop();
      results[0]!.id = 7;
    }
    expect(gateway.calls.map(isConditional)).toEqual([false, true, true]);
  });

  test('with an ETag of its caller’s own is answered with no copy', async () => {
    const { portico } = await openReader();
    await read(portico, 1);
    const asked = read(portico, 1, { headers: { 'If-None-Match': ETAG } });
    await expect(asked).rejects.toMatchObject({ code: 'unexpected_answer' });
  });

  test('is read by the parser that was given, each time', async () => {
    const parsed: string[] = [];
    const { portico } = await openReader({
      parse: (text) => {
        parsed.push(text);
        return { number: parsed.length };
      },
    });
    expect([await read(portico, 1), await read(portico, 1)]).toEqual([{ number: 1 }, { number: 2 }]);
    expect(parsed[1]).toBe(parsed[0]);
  });

  test('of an overview that is unchanged says the same too', async () => {
    const world = await openOverviews();
    const portico = createClient({ url: world.gateway.url, token: world.token, copies: keepCopies() });
    const first = await portico.getAccountOverview();
    expect(await portico.getAccountOverview()).toEqual(first);
  });

  test('of what has changed is another answer, whose ETag counts from then on', async () => {
    const { portico, upstream } = await openClient({}, { copies: keepCopies() });
    upstream.on(SUBSCRIPTION, ...[1, 2].map((mark) => json(200, bodyOf('getSubscription', mark))));
    const fresh: CallOptions = { fresh: true };
    const answers = [];
    for (const options of [undefined, fresh, fresh, undefined])
      answers.push(await portico.getSubscription(undefined, options));
    expect(answers).toMatchObject([{ x_mark: 1 }, { x_mark: 2 }, { x_mark: 2 }, { x_mark: 2 }]);
    expect(upstream.calls).toHaveLength(3);
  });

  test('with `fresh` sends both the ETag and the wish', async () => {
    const { gateway, portico } = await openReader();
    const first = await read(portico, 1);
    expect(await read(portico, 1, { fresh: true })).toEqual(first);
    expect(gateway.calls[1]!.headers).toMatchObject({ 'if-none-match': ETAG, 'cache-control': 'no-cache' });
  });

  test('of another path or query is a first one', async () => {
    const { gateway, portico } = await openReader();
    await read(portico, 1);
    await read(portico, 2);
    await portico.listTransactions({ page: 1 });
    await portico.listTransactions({ page: 2 });
    await portico.listTransactions({ page: 1 }, { query: 'a=1' });
    expect(gateway.calls.map(isConditional)).toEqual(Array(5).fill(false));
  });

  test('of an answer without an ETag is a first one', async () => {
    const { gateway, portico } = await openStandIn({ copies: keepCopies() });
    gateway.on(SUBSCRIPTION, json(200, {}));
    await portico.getSubscription();
    await portico.getSubscription();
    expect(gateway.calls.map(isConditional)).toEqual([false, false]);
  });

  test('is what a failure leaves it: the copy stays for the next try', async () => {
    passPauses();
    const { gateway, portico } = await openReader();
    const first = await read(portico, 1);
    gateway.once(() => true, problem(503, 'a_code', { retryable: true }));
    expect(await read(portico, 1)).toEqual(first);
    expect(gateway.calls.map(isConditional)).toEqual([false, true, true]);
  });
});

test('writes and batches have no copies', async () => {
  const { gateway, portico } = await openReader();
  for (let time = 0; time < 2; time += 1) {
    await portico.updateReferralConfig({ mode: 'credits' });
    await portico.batch({ requests: [{ id: 'a', path: '/api/v2/subscription/' }] });
    await portico.response('getSubscription');
  }
  expect(gateway.calls.map(isConditional)).toEqual(Array(6).fill(false));
});

describe('another account', () => {
  test('never has the copy of the first, though its ETag is the same', async () => {
    let token = 'one';
    const { gateway, portico } = await openReader({ token: () => token });
    const one = await read(portico, 1);
    token = 'two';
    const two = await read(portico, 1);
    expect([one, two]).toMatchObject([{ of: 'Token one' }, { of: 'Token two' }]);
    token = 'one';
    expect(await read(portico, 1)).toEqual(one);
    expect(gateway.calls.map(isConditional)).toEqual([false, false, true]);
  });

  test('that signs in while a read is under way does not get what that one brings', async () => {
    let token = 'one';
    const gate = barrier();
    const { gateway, portico } = await openReader({ token: () => token });
    gateway.once(() => true, reply(hold(gate), revalidated));
    const one = read(portico, 1);
    await gate.reached;
    token = 'two';
    gate.release();
    expect(await one).toMatchObject({ of: 'Token one' });
    expect(await read(portico, 1)).toMatchObject({ of: 'Token two' });
    expect(gateway.calls.map(isConditional)).toEqual([false, false]);
  });

  test('that a function tells of each time it is asked never has the copy of the one before', async () => {
    let asked = 0;
    const { portico } = await openReader({ token: () => `key-${(asked += 1)}` });
    const answers = [await read(portico, 1), await read(portico, 1), await read(portico, 1)];
    expect(answers.map((answer) => (answer as unknown as { of: string }).of)).toEqual(
      Array.from({ length: asked }, (_, index) => `Token key-${index + 1}`),
    );
  });

  test.for(['Authorization', 'authorization', 'Cookie'] as const)(
    'that stands in the header %s has its own',
    async (name) => {
      const { portico } = await openReader({ token: undefined });
      const one = await read(portico, 1, { headers: { [name]: 'one' } });
      const two = await read(portico, 1, { headers: { [name]: 'two' } });
      expect([one, two]).toMatchObject([{ of: 'one' }, { of: 'two' }]);
      expect(await read(portico, 1, { headers: { [name]: 'one' } })).toEqual(one);
    },
  );
});

/** Which of these are still there. */
const kept = async ({ gateway, portico }: Awaited<ReturnType<typeof openReader>>, ids: readonly number[]) => {
  const before = gateway.calls.length;
  for (const id of ids) await read(portico, id);
  const found = gateway.calls.slice(before).map(isConditional);
  return ids.filter((_, index) => found[index]);
};

describe('the number of copies', () => {
  test('is as said, and those that were used last stay', async () => {
    const reader = await openReader({ copies: keepCopies({ most: 2 }) });
    for (const id of [1, 2, 1, 3]) await read(reader.portico, id);
    expect(await kept(reader, [1, 3])).toEqual([1, 3]);
    expect(await kept(reader, [2])).toEqual([]); // and is kept now, in place of 1
    expect(await kept(reader, [3])).toEqual([3]);
    expect(await kept(reader, [1])).toEqual([]);
  });

  test('is 100 unless said', async () => {
    const reader = await openReader();
    for (let id = 0; id <= 100; id += 1) await read(reader.portico, id);
    expect(await kept(reader, [100, 1])).toEqual([100, 1]);
    expect(await kept(reader, [0])).toEqual([]);
  });

  test('is none without `keepCopies`', async () => {
    expect(await kept(await openReader({ copies: undefined }), [1, 1])).toEqual([]);
  });
});

test('a copy that gives way while its 304 is on the way is given back all the same', async () => {
  const { gateway, portico } = await openReader({ copies: keepCopies({ most: 1 }) });
  const first = await read(portico, 1);
  const gate = barrier();
  gateway.once(() => true, reply(hold(gate), revalidated));
  const again = read(portico, 1);
  await gate.reached;
  await read(portico, 2);
  gate.release();
  expect(await again).toEqual(first);
});
