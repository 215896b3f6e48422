import { describe, expect, test } from 'vitest';
import type { Hooks, OnProblem, ToldProblem } from '../../src/upstream/hooks.ts';
import { json } from '../support/scripted-upstream.ts';
import { openBatch, responsesOf } from '../batch/helpers.ts';
import { expectProblem } from '../http/problem.ts';
import { legsOf, openOverviews, optionalOf, overviewTable } from '../overviews/helpers.ts';
import { allOperations } from '../support/account-api.ts';
import type { TextAnswer } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { openWorld, type World } from '../support/world.ts';

const WORDS = { title: 'Oh', detail: 'Leider nein.', support: { id: 7 } };

/** All that a hook may not change, changed. */
const LIES = {
  type: 'https://help.example/x',
  status: 200,
  code: 'fine',
  request_id: 'other',
  instance: '/other',
  retryable: 'yes',
  retry_after: 99,
  outcome: 'known',
  section: 'other',
  errors: [{ code: 'x', message: 'x', field: null }],
};

const ours = (problem: object) =>
  Object.fromEntries(Object.entries(problem).filter(([name]) => Object.hasOwn(LIES, name)));

const faultsIn = ({ gateway }: Pick<World, 'gateway'>) =>
  gateway.lines.filter(({ msg }) => /^internal error$|^the hook /.test(msg));

const hooked = (onProblem: OnProblem): { hooks: Hooks } => ({ hooks: { onProblem } });

/** Problems of every sort, by what answers them. */
const PROBLEMS: readonly (readonly [name: string, ask: (world: World) => Promise<TextAnswer>])[] = [
  ['an unknown path', ({ call }) => call({ path: '/api/v2/nothing/' })],
  ['a method that is not taken', ({ call }) => call({ method: 'DELETE', path: '/api/v2/subscription/' })],
  ['no credential', ({ call }) => call({ path: '/api/v2/subscription/' })],
  ['bad input', ({ call, token }) => call({ method: 'POST', path: '/api/v2/payment/method/', token, body: '{' })],
  ['a refusal', ({ ask }) => ask('listNotifications')],
  ['a failure', ({ ask }) => ask('getReferralConfig')],
  ['a wait', ({ ask }) => ask('listPaymentMethods')],
  ['a write whose outcome is unknown', ({ ask }) => ask('purchasePlan', { key: 'k' })],
  ['a section that fails the whole', ({ call, token }) => call({ path: '/bff/v1/account-overview', token })],
  ['a refusal of the server', ({ call }) => call({ path: `/api/v2/${'a'.repeat(9_000)}` })],
  ['another refusal of the server', ({ call }) => call({ path: '/api/v2/../v2/subscription/' })],
];

const openTroubled = async (options: Parameters<typeof openWorld>[1] = {}) => {
  const world = await openWorld({}, options);
  world.upstream
    .on(() => true, json(500))
    .on('GET /api/v2/notification/', json(400, { field: [{ message: 'no', code: 'no' }] }))
    .on('GET /api/v2/payment/method/', json(429, '', { 'Retry-After': '7' }));
  return world;
};

describe.each(PROBLEMS)('the problem of %s', (_, ask) => {
  test('has what the hook says, and what clients act on stays ours', async () => {
    const plain = await ask(await openTroubled());
    const world = await openTroubled(hooked((problem) => ({ ...problem, ...WORDS, ...LIES })));
    const told = await ask(world);
    expect(told.status).toBe(plain.status);
    const id = { request_id: told.headers['x-request-id'] };
    expect(told.json).toEqual({ ...ours(plain.json as object), ...id, ...WORDS });
    expect(faultsIn(world)).toEqual([]);
  });

  test('stays as it is where the hook only changes what it was given', async () => {
    const plain = await ask(await openTroubled());
    const world = await openTroubled(
      hooked((problem) => {
        Object.assign(problem, LIES);
        (problem.errors as unknown[]).splice(0);
        return {};
      }),
    );
    const told = await ask(world);
    expect(told.json).toEqual({ ...(plain.json as object), request_id: told.headers['x-request-id'] });
  });
});

test('the hook sees the operation, and nothing else of the request', async () => {
  const seen: unknown[] = [];
  const world = await openTroubled(
    hooked((problem, request) => {
      seen.push([problem.code, request]);
      return problem;
    }),
  );
  await world.ask('listNotifications');
  await world.call({ path: '/nothing' });
  await world.call({ path: '/bff/v1/account-overview', token: world.token });
  expect(seen).toEqual([
    ['validation_failed', { operation: 'listNotifications' }],
    ['unknown_endpoint', { operation: undefined }],
    ['upstream_bad_response', { operation: 'getAccountOverview' }],
  ]);
});

test('the hook is not asked where there is no problem', async () => {
  let count = 0;
  const world = await openWorld(
    {},
    hooked(() => ({ count: count++ })),
  );
  world.answerAll();
  for (const { id } of allOperations) await world.ask(id);
  await world.call({ path: '/bff/v1/account-overview', token: world.token });
  expect(count).toBe(0);
});

const WRONG: readonly (readonly [what: string, hook: () => unknown])[] = [
  ['throws', () => throwing(new SyntaxError('a secret'))],
  ['throws an error whose stack is no text', () => throwing(Object.assign(new Error('a secret'), { stack: 5 }))],
  ['returns nothing', () => undefined],
  ['returns a list', () => [WORDS]],
  ['returns a promise', () => Promise.resolve(WORDS)],
  ['returns a promise that fails', () => Promise.reject(new Error('no'))],
  ['returns an instance of a class', () => new Map([['title', 'x']])],
  ['returns what is no JSON', () => ({ count: 1n })],
  ['returns a title that is no text', () => ({ ...WORDS, title: { de: 'Nein' } })],
];

const throwing = (thrown: unknown): never => {
  throw thrown;
};

describe.each(WRONG)('where the hook %s', (_, hook) => {
  test('the problem goes out as it was, and the log has the fault, without its message', async () => {
    const world = await openTroubled(hooked(hook as OnProblem));
    const problem = expectProblem(await world.ask('listNotifications'), { status: 400, code: 'validation_failed' });
    expect(problem.type).toBe('/problems/validation_failed');
    expect(faultsIn(world)).toMatchObject([{ fault: expect.stringMatching(/^(\w+Error +at |Error$)/) }]);
    expect(JSON.stringify(faultsIn(world))).not.toContain('secret');
  });
});

const lying: OnProblem = (problem) => ({ ...problem, ...WORDS, ...LIES, told: problem['section'] });

const ndjson = { headers: { Accept: 'application/x-ndjson' } };

const entry = ({ section }: { section: string }) => ({
  code: 'upstream_unavailable',
  status: 503,
  detail: WORDS.detail,
  retryable: true,
  retry_after: 9,
  support: WORDS.support,
  told: section,
});

describe.each(overviewTable)('entries of `errors` of %s', (path, overview) => {
  const optional = optionalOf(overview);
  const open = async (onProblem?: OnProblem) => {
    const world = await openOverviews({}, { hooks: { onProblem } });
    for (const leg of optional) world.on(leg, json(503, '', { 'Retry-After': '9' }));
    return world;
  };
  test('have what their problem would have', async () => {
    const world = await open(lying);
    const { body } = await world.get(path);
    expect(body.errors).toEqual(optional.map((leg) => ({ section: leg.section, ...entry(leg) })));
  });

  test('have it in lines too', async () => {
    const world = await open(lying);
    const lines = (await world.get(path, ndjson)).text.trim().split('\n').map(parsed);
    for (const leg of optional) {
      const line = lines.find(({ section }) => section === leg.section);
      expect(line).toEqual({ section: leg.section, state: expect.any(String), error: entry(leg) });
    }
    expect(lines).toHaveLength(legsOf(overview).length + 1);
  });

  test.each([{}, ndjson])('are as they were where the hook fails, which is logged (%j)', async (options) => {
    const [plain, failing] = [await open(), await open(() => throwing(new Error('no')))];
    const lines = async (world: typeof plain) => (await world.get(path, options)).text.split('\n').toSorted();
    expect(await lines(failing)).toEqual(await lines(plain));
    expect([faultsIn(plain).length, faultsIn(failing).length]).toEqual([0, optional.length]);
  });
});

const parsed = (line: string) => JSON.parse(line) as Readonly<Record<string, unknown>>;

test('items of a batch have what their problems would have', async () => {
  const told: ToldProblem[] = [];
  const world = await openBatch(
    {},
    hooked((problem) => {
      told.push(problem);
      return { ...problem, ...WORDS, ...LIES };
    }),
  );
  const paths = ['/api/v2/subscription/', '/api/v2/notification/', '/api/v2/nothing/?a=1'];
  world.on(paths[0] ?? '', json(200, { id: 1 }));
  world.on(paths[1] ?? '', json(404, { detail: 'Not here.' }));
  const responses = responsesOf(await world.batch(paths));
  expect(responses.map(({ status }) => status)).toEqual([200, 404, 404]);
  expect(told.map(({ instance, detail }) => [instance, detail])).toEqual([
    ['/api/v2/notification/', 'Not here.'],
    ['/api/v2/nothing/', 'There is nothing at this path.'],
  ]);
  expect(responses.map(({ body }) => [body['instance'], body['code'], body['detail'], body['support']])).toEqual([
    [undefined, undefined, undefined, undefined],
    ['/api/v2/notification/', 'not_found', WORDS.detail, WORDS.support],
    ['/api/v2/nothing/', 'unknown_endpoint', WORDS.detail, WORDS.support],
  ]);
});

test('the admin listener has problems of its own', async () => {
  const world = await openWorld({}, { hasAdmin: true, ...hooked(() => WORDS) });
  const [own, refused] = [
    await world.admin({ path: `/nothing?${secret().length}` }),
    await world.admin({ path: '/a/../b' }),
  ];
  for (const answer of [own, refused]) expect(answer.json).not.toMatchObject({ title: WORDS.title });
  expect((await world.call({ path: '/nothing' })).json).toMatchObject({ title: WORDS.title });
});
