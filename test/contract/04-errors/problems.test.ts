import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { expectProblem, type Problem } from '../../support/problem.ts';
import { leaksIn, secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer, reset } from '../../support/upstream.ts';

everywhere(
  says('Every 4xx and 5xx, from every path and listener, is `application/problem+json` (RFC 9457)'),
  async ({ ask, call, upstream }) => {
    upstream.next('createApiKey', answer(409, { detail: 'No.' }), answer(500, '<h1>Oops</h1>'));
    const answers = [
      [await ask('getSubscription', { token: null }), 401, 'unauthenticated'],
      [await call('/'), 404, 'unknown_endpoint'],
      [await call('/docs/nothing'), 404, 'unknown_endpoint'],
      [await call('/problems/Nothing'), 404, 'not_found'],
      [await call('/readyz', { method: 'POST' }), 405, 'method_not_allowed'],
      [await call('/bff/v1/batch', { body: '{' }), 400, 'malformed_json'],
      [await ask('createApiKey'), 409, 'conflict'],
      [await ask('createApiKey'), 502, 'upstream_bad_response'],
    ] as const;
    for (const [got, status, code] of answers) expectProblem(got, { status, code });
  },
);

const errorsOf = async (got: Promise<{ readonly json: Problem }>) => (await got).json.errors;

everywhere(says('`errors` is always there, maybe empty;'), async ({ ask, call, upstream }) => {
  upstream.next('getApiKey', answer(403, { detail: 'No.', code: '2fa_needed' }), answer(404, ''));
  expect(await errorsOf(call('/nothing'))).toEqual([]);
  expect(await errorsOf(ask('getApiKey'))).toEqual([{ code: '2fa_needed', message: 'No.', field: null }]);
  expect(await errorsOf(ask('getApiKey'))).toEqual([]);
});

everywhere(says('`field` is a dotted path or null;'), async ({ ask, upstream }) => {
  const { json } = await ask('purchasePlan', { body: { proxy_countries: { US: '5' } } });
  expect((json as Problem).errors.map(({ field }) => field)).toEqual(['proxy_countries.US']);
  upstream.next('purchasePlan', answer(400, { plan: { sizes: ['Bad.'] }, non_field_errors: ['No.'] }));
  expect(((await ask('purchasePlan')).json as Problem).errors).toEqual([
    { code: 'invalid', message: 'Bad.', field: 'plan.sizes' },
    { code: 'invalid', message: 'No.', field: null },
  ]);
});

everywhere(says('`retry_after` (seconds) stands where `Retry-After` does.'), async ({ ask, upstream }) => {
  upstream.next('createApiKey', answer(429, '', { 'retry-after': '7' }));
  const held = await ask('createApiKey');
  expect(expectProblem(held, { status: 429, code: 'rate_limited' }).retry_after).toBe(7);
  expect(held.headers.get('retry-after')).toBe('7');
  const gone = await ask('getApiKey', { token: null });
  expect([gone.headers.get('retry-after'), 'retry_after' in gone.json]).toEqual([null, false]);
});

everywhere(says('`retryable`: whether the same request may succeed later;'), async ({ ask, upstream }) => {
  const retryable = async (status: number) => {
    upstream.next('createApiKey', answer(status, ''));
    return ((await ask('createApiKey', { token: secret() })).json as Problem).retryable;
  };
  for (const status of [400, 401, 403, 404, 409, 422])
    expect([status, await retryable(status)]).toEqual([status, false]);
  for (const status of [408, 425, 429]) expect([status, await retryable(status)]).toEqual([status, true]);
  upstream.next('getApiKey', answer(500, ''));
  expect(((await ask('getApiKey', { token: secret() })).json as Problem).retryable).toBe(true);
});

everywhere(
  says('false where `outcome` is `unknown`: each problem of an unknown outcome says so, and has no `Retry-After`.'),
  async ({ ask, upstream }) => {
    const ends = [
      [answer(500, ''), 502],
      [answer(503, '', { 'retry-after': '7' }), 503],
      [answer(504, ''), 504],
      [answer(200, '{"a":'), 502],
      [answer(302, ''), 502],
      [reset(), 502],
    ] as const;
    for (const [end, status] of ends) {
      upstream.next('createApiKey', end);
      const got = await ask('createApiKey', { token: secret() });
      const { outcome, retryable, detail } = got.json as Problem;
      expect([got.status, outcome, retryable]).toEqual([status, 'unknown', false]);
      expect(got.headers.get('retry-after')).toBe(null);
      expect(detail).toContain('may have happened');
    }
    expect(upstream.callsTo('createApiKey')).toHaveLength(ends.length);
  },
);

everywhere(says('A message of the upstream for the whole is `detail`.'), async ({ ask, upstream }) => {
  upstream.next('getApiKey', answer(403, { detail: 'Enter the code.' }), answer(400, { mode: ['Wrong.'] }));
  expect(((await ask('getApiKey')).json as Problem).detail).toBe('Enter the code.');
  const ofFields = 'The upstream refused parts of the request; `errors` names each.';
  expect(((await ask('getApiKey')).json as Problem).detail).toBe(ofFields);
});

interface Listed {
  readonly problems: readonly { readonly [name in 'code' | 'type' | 'status' | 'title']: string }[];
}

everywhere(says('`GET /problems` lists the codes, `GET /problems/<code>` describes one.'), async ({ call }) => {
  const list = await call('/problems', { token: null });
  const { problems } = list.json as Listed;
  expect((await call('/problems/', { token: null })).text).toBe(list.text);
  for (const { code, type, status, title } of problems) {
    const page = await call(`/problems/${code}`, { token: null });
    expect([type, page.status, page.json]).toMatchObject([`/problems/${code}`, 200, { code, title, status }]);
    expect(page.json.description ?? page.json.detail).toMatch(/^[A-Z][^;]*\.$/);
  }
  for (const code of ['out_of_luck', 'constructor', 'status_419'])
    expect((await call(`/problems/${code}`)).json).toMatchObject({
      code,
      detail: expect.stringMatching(/upstream’s own/),
    });
  for (const word of ['Nothing', '__proto__', 'status_519', 'a.b', '4242'])
    expectProblem(await call(`/problems/${word}`), { status: 404, code: 'not_found' });
});

everywhere(says('No stack, no HTML, no upstream host, no credential in any of it.'), async ({ ask, upstream, me }) => {
  const html = '<!doctype html><h1>At internal.example</h1><pre>at Object.<anonymous> (/srv/app.js:1:1)</pre>';
  for (const status of [400, 404, 500]) {
    upstream.next('createApiKey', answer(status, html, { 'content-type': 'text/html' }));
    expect((await ask('createApiKey')).text).not.toMatch(/<|internal\.example|\/srv/);
  }
  upstream.next('createApiKey', ({ headers: { host = 'upstream.test' }, token }) =>
    answer(400, { detail: `Not ${token} at http://${host}/x.`, label: [`${host}?`] }),
  );
  const { text } = await ask('createApiKey');
  expect(text).toContain('"Not … at http://…/x."');
  expect(text).not.toContain(me);
});

const PLACES: readonly (readonly [string, (said: string) => unknown])[] = [
  ['a detail', (said) => ({ detail: `Not ${said}, or (${said}).` })],
  ['an array', (said) => [{ message: said, code: 'invalid' }]],
  ['a field', (said) => ({ label: [{ message: `${said}?`, code: 'invalid' }] })],
  ['a bare string', (said) => JSON.stringify(said)],
  ['the name of a field', (said) => ({ [said]: ['Wrong.'] })],
  ['a pointer', (said) => [{ detail: 'Wrong.', pointer: `#/${said}` }]],
  ['a code', (said) => ({ detail: 'Wrong.', code: said })],
  ['a message that is cut in the middle of it', (said) => ({ detail: 'x'.repeat(485) + said })],
];

describe(says('no upstream host, no credential in any of it'), () => {
  const { ask, upstream, lines } = openGateway({ UPSTREAM_BASE_URL: 'http://Internal.example:8080' });
  const textFor = async (body: unknown, token = secret()) => {
    upstream.next('getSubscription', answer(400, body));
    const { status, text } = await ask('getSubscription', { token });
    expect([status, leaksIn(JSON.stringify(lines))]).toEqual([400, []]);
    return text;
  };

  test.each(PLACES)('where the upstream says it again in %s', async (_, place) => {
    const token = `Keys/${secret()}`;
    expect(await textFor(place(token), token)).not.toMatch(/Keys.pk/);
    for (const said of ['http://internal.example:8080/x', 'internal.example:8080', 'internal.example'])
      expect(await textFor(place(said))).not.toContain('internal.exam');
  });

  test.each([8, 31, 32, 33, 4_096])('where it is of %i characters, to its end', async (length) => {
    const token = secret().padEnd(length, 'Z').slice(0, length);
    expect(await textFor({ detail: `Not ${token}, or (${token}).` }, token)).toContain('"Not …, or (…)."');
  });

  test('in any case of letters, and looked for once in a long text', async () => {
    const detail = 'No route to INTERNAL.EXAMPLE:8080, http://Internal.Example/x or internal.examplE:80.';
    expect(await textFor({ detail })).toContain('"No route to …, http://…/x or …:80."');
    await textFor({ detail: 'a'.repeat(60_000) }, `${'a'.repeat(4_095)}b`);
  });
});
