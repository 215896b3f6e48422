import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { exampleBody } from '../../support/examples.ts';
import { type Asked, openGateway } from '../../support/gateway.ts';
import { leaksIn, secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { json as replyWith } from '../../support/steps.ts';
import { answer } from '../../support/upstream.ts';
import { openWorld } from '../../support/world.ts';

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** What parsing and printing, or a check against the document, would change. */
const TEXTS = [
  exampleBody('getSubscription'),
  '{"x_new":{"deep":[1,2.50,"é"]},"a":25.0,"b":"0.20","c":9007199254740993123,"a":1}',
  ' {"a" : 25.0}\n',
  String.raw`"\ud83d\ude00é\u0000\/"`,
  nested(64),
  '0',
  'null',
  '[]',
  '[1e400,-0.0,1E+2]',
  '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
];

everywhere(
  says(
    'A 2xx body arrives value for value as the upstream sent it: unknown fields, `25.0`, `"0.20"`, integers beyond 2^53.',
  ),
  async ({ ask, upstream }) => {
    for (const text of TEXTS) {
      upstream.next('getSubscription', answer(200, text));
      upstream.next('createApiKey', answer(200, text));
      const headers = { 'cache-control': 'no-cache' };
      expect(await ask('getSubscription', { headers })).toMatchObject({ status: 200, text });
      expect(await ask('createApiKey')).toMatchObject({ status: 200, text });
    }
    expect({}).not.toHaveProperty('polluted');
  },
);

everywhere(says("**Status** of a 2xx as the upstream's;"), async ({ ask, upstream }) => {
  for (const status of [201, 202, 204]) {
    const text = status === 204 ? '' : '{"a":1.0}';
    upstream.next('getSubscription', answer(status, text));
    upstream.next('createApiKey', answer(status, text));
    const got = await ask('getSubscription');
    expect(got).toMatchObject({ status, text, cache: 'portico; fwd=miss' });
    expect(got.headers.get('cache-control')).toBe('no-store');
    expect(await ask('createApiKey')).toMatchObject({ status, text });
  }
});

everywhere(says('204 has no body.'), async ({ ask }) => {
  for (const id of ['deletePaymentMethod', 'deleteIpAuthorization', 'refreshProxyList'] as const) {
    const { status, text, headers } = await ask(id);
    expect([status, text, headers.get('cache-control')]).toEqual([204, '', 'no-store']);
    for (const name of ['content-type', 'content-length', 'etag']) expect(headers.has(name)).toBe(false);
  }
});

everywhere(says('**HEAD** works where GET does.'), async ({ call }) => {
  for (const path of ['/api/v2/subscription/', '/api/v2/apikey/1/', '/bff/v1/account-overview']) {
    const [got, head] = [await call(path), await call(path, { method: 'HEAD' })];
    expect([head.status, head.text]).toEqual([200, '']);
    for (const name of ['content-type', 'etag', 'cache-control', 'vary'])
      expect(head.headers.get(name)).toBe(got.headers.get(name));
  }
  expect((await call('/nothing', { method: 'HEAD' })).status).toBe(404);
});

const here = openGateway();
const { lines } = here;

/** Fields of these do not fit the document; the log says which, and not with what. */
const DRIFTS: readonly (readonly [what: string, text: () => string, fields: readonly string[]])[] = [
  ['a field of another type', () => exampleBody('getSubscription', { term: 7 }), ['term']],
  ['a field that is missing', () => exampleBody('getSubscription').replace('"paused":', '"pause":'), ['paused']],
  ['the whole', () => '[]', ['(whole)']],
  ['nothing, but more than is documented', () => exampleBody('getSubscription', { x_more: secret('new') }), []],
];

const warnedSince = (from: number) => lines.slice(from).filter(({ level }) => level === 'warn');

describe(says('A 2xx body arrives value for value as the upstream sent it'), () => {
  test.each(DRIFTS)('where it does not fit the document in %s, and the log names that', async (_, make, fields) => {
    const [text, from] = [make(), lines.length];
    here.upstream.next('getSubscription', answer(200, text));
    expect(await here.ask('getSubscription', { token: secret() })).toMatchObject({ status: 200, text });
    expect(warnedSince(from).map(({ field }) => field)).toEqual(fields);
    expect(leaksIn(JSON.stringify(lines.slice(from)))).toEqual([]);
  });

  test('names of a map are not in the log, nor those that look like fields', async () => {
    const from = lines.length;
    const proxy_countries = { [secret('name')]: 'many', jane_doe: 'many', id: 'more' };
    here.upstream.next('getSubuser', answer(200, exampleBody('getSubuser', { proxy_countries })));
    await here.ask('getSubuser', { token: secret() });
    expect(warnedSince(from).map(({ field }) => field)).toEqual(['proxy_countries.*']);
  });
});

const LIST = '/api/v2/payment/transaction/';

/** What `next` and `previous` become for the client, where both of the upstream's are this JSON text. */
const linksFor = async (text: string, { ask, upstream }: Pick<Asked, 'ask' | 'upstream'> = here) => {
  upstream.next('listTransactions', answer(200, `{"count":1,"next":${text},"previous":${text},"results":[]}`));
  const { next, previous } = (await ask('listTransactions', { token: secret() })).json as { [name: string]: unknown };
  return [next, previous];
};

const QUERY = '?page=2&page_size=5&x=%7e%2F+&x=a%20b';

everywhere(
  says('The one change: `next` and `previous` of a page point at the gateway.'),
  async ({ ask, call, upstream, me }) => {
    const last = 4;
    const linkTo = (page: number) =>
      page < 1 || page > last ? null : `https://internal.example${LIST}?page=${page}&x=%7e`;
    const pages = (page: number) =>
      answer(200, exampleBody('listTransactions', { next: linkTo(page + 1), previous: linkTo(page - 1) }));
    upstream.next('listTransactions', pages(1), pages(2), pages(3), pages(4));
    const links: string[] = [];
    for (let { next } = (await ask('listTransactions')).json as { next: string | null }; next !== null;) {
      const { pathname, search, hostname } = new URL(next);
      expect(hostname).not.toBe('internal.example');
      links.push(search);
      const page = await call(pathname + search);
      ({ next } = page.json as { next: string | null });
      if (next === null) expect(URL.parse((page.json as { previous: string }).previous)?.search).toBe('?page=3&x=%7e');
    }
    expect(links).toEqual([2, 3, 4].map((page) => `?page=${page}&x=%7e`));
    expect(upstream.callsOf(me).map(({ target }) => target)).toEqual(['', ...links].map((link) => LIST + link));
  },
);

const local = (query: string) => `http://localhost${LIST}${query}`;
const both = (link: unknown) => [link, link];

describe(says('`next` and `previous` of a page point at the gateway'), () => {
  const origins = ['https://upstream.test', 'http://u@internal.example:81', '', '//a.example'];
  const paths = [LIST, `/within${LIST}`, LIST.slice(0, -1), LIST.replace('y', '%79'), LIST.slice('/api'.length), '/'];
  const pages = origins.flatMap((origin) => paths.map((path) => `${origin}${path}${QUERY}#top`));
  const schemes = ['http://[', 'javascript:alert(1)', 'x:@elsewhere.example/', 'mailto:someone', 'data:text/html,x'];
  const elsewhere = [
    `ftp://upstream.test${LIST}${QUERY}`,
    'page2',
    'page2?size=5',
    `${LIST}2/?size=5`,
    '/api/v2/referral/credit/?page=2',
  ];

  test.each([
    ['from any origin and path of this list, or none', [...pages, QUERY, ` ./${QUERY}`], both(local(QUERY))],
    ['but `next` not to the first page, for ever', [LIST, '?', '/', `//upstream.test${LIST}#`], [null, local('')]],
    ['or are null where they lead nowhere or elsewhere', ['', ' ', '#', ...schemes, ...elsewhere], both(null)],
  ])('%s', async (_, links, expected) => {
    for (const link of links) expect([link, await linksFor(JSON.stringify(link))]).toEqual([link, expected]);
  });

  test('with characters escaped, with a cursor as it is, and as they are where they are no texts', async () => {
    const link = JSON.stringify(`http://upstream.test${LIST}${QUERY}`);
    const escaped = link.replaceAll('/', String.raw`\/`).replaceAll('&', String.raw`\u0026`);
    expect(await linksFor(escaped)).toEqual(both(local(QUERY)));
    const cursor = '?starting_after=2026-06-09T11:50:08.101337-07:00&search=%C3%A9';
    expect(await linksFor(`"http://upstream.test${LIST}${cursor}"`)).toEqual(both(local(cursor)));
    for (const text of ['null', '7', 'true', '{"next":"http://upstream.test/x"}', '["?page=2"]'])
      expect(await linksFor(text)).toEqual(both(JSON.parse(text)));
  });

  test('with the host that each request names, from the cache too', async () => {
    const token = secret();
    here.upstream.next('listTransactions', answer(200, { next: `http://upstream.test${LIST}?page=2`, results: [] }));
    for (const host of ['one.example', 'two.example:8443', '[::1]:8787', '198.51.100.7']) {
      const headers = { 'x-forwarded-host': 'elsewhere.example' };
      const { json } = await here.call(`http://${host}${LIST}`, { token, headers });
      expect(json.next).toBe(`http://${host}${LIST}?page=2`);
    }
  });

  test.each(['https://api.portico.example', 'https://portico.example/of/api/'])('below PUBLIC_URL, %s', async (url) => {
    const gateway = openGateway({ PUBLIC_URL: url });
    expect((await linksFor(`"${LIST}?page=3"`, gateway))[0]).toBe(`${url.replace(/\/$/, '')}${LIST}?page=3`);
    const mount = new URL(url).pathname.replace(/\/$/, '');
    const { json } = await gateway.call('/api/nothing');
    expect(json).toMatchObject({ type: `${mount}/problems/unknown_endpoint`, instance: '/api/nothing' });
  });

  // The base is put before the path where the connection is, so this is on sockets.
  test('without the path of a base URL', async () => {
    const { upstream, ask } = await openWorld({}, { base: '/up/stream/' });
    const next = `http://upstream.test/up/stream${LIST}?page=3`;
    upstream.on(`GET /up/stream${LIST}`, replyWith(200, { next, previous: `https://internal.example${LIST}?page=1` }));
    const page = (await ask('listTransactions')).json as { next: string; previous: string };
    expect([page.next, page.previous].map((link) => new URL(link).pathname)).toEqual([LIST, LIST]);
    expect(upstream.calls.map(({ target }) => target)).toEqual([`/up/stream${LIST}`]);
  });
});

describe(says('The one change'), () => {
  test('is at the top of a page, and nothing else in it changes', async () => {
    const inside = '{"next":"http://upstream.test/x","previous":1.50}';
    const page = (next: string) =>
      `\r\n{ "count" : 25.0,"next"\t: ${next} ,\n"x\\"next":"http://upstream.test/y", "results":[${inside}],"next":${next},"b":9007199254740993123}`;
    here.upstream.next('listTransactions', answer(200, page(`"http://upstream.test${LIST}?page=2"`)));
    const { text } = await here.ask('listTransactions', { token: secret() });
    expect(text).toBe(page(`"http://localhost${LIST}?page=2"`));
  });

  test('is not made in what is no page', async () => {
    const text = exampleBody('getSubscription', { next: 'http://upstream.test/x' });
    here.upstream.next('getSubscription', answer(200, text));
    expect((await here.ask('getSubscription', { token: secret() })).text).toBe(text);
  });
});
