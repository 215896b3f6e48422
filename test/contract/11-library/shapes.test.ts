import { describe, expect, test } from 'vitest';
import {
  defineRows,
  from,
  fromPath,
  type Operation,
  overview,
  type Overview,
  pageOf,
  resource,
  type Row,
  text,
} from '../../../src/index.ts';
import { tableOf } from '../../../src/upstream/table.ts';
import type { OperationId } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { answer, Upstream } from '../../support/upstream.ts';
import { flawsIn } from '../10-docs/openapi.ts';
import { orgs, rows } from './orgs.ts';

const ORIGIN = 'https://app.example';
const { call, upstream } = openGateway({ ALLOWED_ORIGINS: ORIGIN }, { ...orgs, upstream: new Upstream(orgs.table) });
const next = (id: string, ...replies: Parameters<typeof answer>[]) =>
  upstream.next(id as OperationId, ...replies.map((reply) => answer(...reply)));
const targets = () => upstream.calls.map(({ method, target }) => `${method} ${target}`);
type Told = Readonly<Record<'name', string> & Record<'schema', object>>;

const HOST = '01981f0e-7d2c-7000-8000-5f3b9c0d1e2f';

describe(says('several parameters in a path'), () => {
  test('each value has its place, in the path and in the cache', async () => {
    const token = secret();
    const paths = [
      '/v1/orgs/acme/members/5',
      '/v1/orgs/acme/members/6',
      '/v1/orgs/other/members/5',
      '/v1/orgs/acme/members',
    ];
    for (const path of [...paths, ...paths]) expect((await call(path, { token })).status, path).toBe(200);
    expect(targets()).toEqual(paths.map((path) => `GET ${path}`));
    await call(`/v1/hosts/eu-west.1/${HOST}/`);
    expect(upstream.calls.at(-1)?.target).toBe(`/v1/hosts/eu-west.1/${HOST}`);
  });

  test('a UUID is one item in either case: after a write of it nobody gets the old copy', async () => {
    const token = secret();
    const [upper, lower] = [`/v1/keys/${HOST.toUpperCase()}`, `/v1/keys/${HOST}`];
    await call(upper, { token });
    await call(lower, { token, method: 'DELETE' });
    await call(upper, { token });
    expect(targets()).toEqual([`GET ${upper}`, `DELETE ${lower}`, `GET ${upper}`]);
  });

  test('a value that makes the path of another row is an unknown endpoint, in an overview too', async () => {
    expect((await call('/bff/v1/box-overview/other')).status).toBe(200);
    expect((await call('/bff/v1/box-overview/kept')).code).toBe('unknown_endpoint');
    expect(targets()).toEqual(['GET /v1/boxes/other']);
  });

  test.each([
    ['/v1/boxes/kept/', '/v1/boxes/{box}'],
    ['/v1/boxes/kept/{part}', '/v1/boxes/{box}/lid'],
  ])('a value that makes the path of another row is an unknown endpoint: of %s in %s', async (other, path) => {
    const params = other.includes('{') ? { params: { part: 'name' } } : {};
    const table = make({
      kept: { at: `GET ${other}`, answer: film, ...params },
      any: { at: `GET ${path}`, params: { box: 'name' }, answer: film },
    });
    const sections = { any: { read: table['any']!, params: { box: fromPath('box') }, required: true } } as const;
    const all = { table: tableOf(table), overviews: [overview('/bff/v1/any-overview/:box', sections)] };
    const own = openGateway({}, { ...all, upstream: new Upstream(all.table) });
    const codes = ['other', 'kept'].map(async (one) => (await own.call(`/bff/v1/any-overview/${one}`)).code);
    expect(await Promise.all(codes)).toEqual([undefined, 'unknown_endpoint']);
    expect(own.upstream.calls.map(({ target }) => target)).toEqual([path.replace('{box}', 'other')]);
  });

  test('a read at a path where another row has a write alone is the read, in a batch too', async () => {
    const paths = ['/v1/boxes/new', '/v1/boxes/5'];
    const requests = paths.map((path, at) => ({ id: String(at), path }));
    await call('/bff/v1/batch', { body: { requests } });
    for (const path of paths) await call(path);
    expect(targets().toSorted()).toEqual([...paths, ...paths].map((path) => `GET ${path}`).toSorted());
  });

  test('a value that is not of its form is an unknown endpoint, alone and in a batch', async () => {
    const paths = [
      '/v1/orgs/a.b/members/5',
      '/v1/orgs/acme/members/x',
      '/v1/orgs//members/5',
      '/v1/orgs/acme%2Fmembers/5',
      `/v1/hosts/eu-../${HOST}/..`,
      `/v1/hosts/../${HOST}`,
      '/v1/hosts/all/5',
      '/v1/files/.',
      '/v1/files/..',
      '/v1/index-json',
    ];
    for (const path of paths) expect([path, (await call(path)).code]).toEqual([path, 'unknown_endpoint']);
    const requests = paths.map((path, at) => ({ id: String(at), path }));
    const { responses } = (await call('/bff/v1/batch', { body: { requests } })).json;
    for (const { body } of responses) expect(body.code).toBe('unknown_endpoint');
    expect(upstream.calls).toEqual([]);
  });

  test('a write of one item is seen there and in the list beside it, and nowhere else', async () => {
    const token = secret();
    const paths = [
      '/v1/orgs/acme/members/5',
      '/v1/orgs/acme/members',
      '/v1/orgs/acme/members/6',
      '/v1/orgs/other/members',
      '/v1/orgs/acme',
    ];
    const versions = () => Promise.all(paths.map(async (path) => (await call(path, { token })).version));
    expect(await versions()).toEqual([1, 1, 1, 1, 1]);
    const put = { token, method: 'PUT', body: { name: 'new' } };
    expect((await call('/v1/orgs/acme/members/05', put)).status).toBe(200);
    expect(upstream.calls.at(-1)).toMatchObject({
      method: 'PUT',
      target: '/v1/orgs/acme/members/05',
      body: '{"name":"new"}',
    });
    expect(await versions()).toEqual([2, 2, 1, 1, 1]);
  });
});

describe(says('any of GET, POST, PUT, PATCH, DELETE'), () => {
  test('a PUT is sent once, and is none of the methods of another path', async () => {
    next('putMember', [503]);
    const put = { method: 'PUT', body: { name: 'new' }, key: 'k' };
    expect((await call('/v1/orgs/acme/members/5', put)).json).toMatchObject({ status: 503, outcome: 'unknown' });
    expect(targets()).toEqual(['PUT /v1/orgs/acme/members/5']);
    expect((await call('/v1/orgs/acme/members/5', { method: 'DELETE' })).headers.get('allow')).toBe('GET, HEAD, PUT');
    expect((await call('/v1/orgs/acme', { ...put, method: 'PUT' })).headers.get('allow')).toBe('GET, HEAD, DELETE');
    const origin = { origin: ORIGIN, 'access-control-request-method': 'PUT' };
    const preflight = await call('/v1/orgs/acme/members/5', { method: 'OPTIONS', token: null, headers: origin });
    expect(preflight.headers.get('access-control-allow-methods')).toContain('PUT');
  });
});

describe(says('pages of another shape'), () => {
  test('links lead through the gateway wherever they stand, and tokens stay', async () => {
    const far = 'http://upstream.test/v1/orgs/acme/members';
    const item = '{"id":9007199254740993,"amount":25.0,"links":{"next":"mine"}}';
    const page = (links: string) => `{"links":${links},"data":[${item}],"next":"?page=3"}`;
    next('listMembers', [
      200,
      page(`{"self":"${far}","next":"${far}?after=1%2F2","prev":null,"last":"http://else.test/x","own":"${far}"}`),
    ]);
    const at = 'http://localhost/v1/orgs/acme/members';
    expect((await call('/v1/orgs/acme/members?limit=1', { token: secret() })).text).toBe(
      page(`{"self":"${at}","next":"${at}?after=1%2F2","prev":null,"last":null,"own":"${far}"}`),
    );
    const tokens = '{"items":[],"nextPageToken":"/v1/hosts/kept?x","next":"http://upstream.test/v1/hosts/kept?page=2"}';
    next('listKept', [200, tokens]);
    expect((await call('/v1/hosts/kept', { token: secret() })).text).toBe(tokens);
  });

  test('so do those of a `Link` header, also from a copy, and scripts may read it', async () => {
    const asking = { token: secret(), headers: { origin: ORIGIN } };
    const link = [
      '<http://upstream.test/v1/hosts?page=2,3>; rel="next"; results="true, true"; cursor="0:100:0"',
      '<?page=9>; rel=last, </other?page=1>; rel="prev", <http://upstream.test/v1/hosts>; rel="next"',
      '</style.css>; rel=preload, </>; rel="home", <broken; rel="first", <?page=1>; rel="é"',
    ];
    next('listHosts', [200, '[{"name":"a"}]', { link }]);
    const expected =
      '<http://localhost/v1/hosts?page=2,3>; rel="next"; results="true, true"; cursor="0:100:0", ' +
      '<http://localhost/v1/hosts?page=9>; rel=last';
    const first = await call('/v1/hosts', asking);
    const again = await call('/v1/hosts/', asking);
    const same = await call('/v1/hosts', {
      ...asking,
      headers: { ...asking.headers, 'if-none-match': first.headers.get('etag')! },
    });
    expect([first.status, again.cache?.includes('hit'), same.status]).toEqual([200, true, 304]);
    for (const { headers } of [first, again, same]) {
      expect(headers.get('link')).toBe(expected);
      expect(headers.get('access-control-expose-headers')).toContain(', Link');
    }
    const fresh = { ...asking, headers: { 'cache-control': 'no-cache' } };
    next('listHosts', [200, '[]', { etag: '"a"', link: '<?cursor=1>; rel="next"' }]);
    await call('/v1/hosts', fresh);
    next('listHosts', [304, '', { link: '<?cursor=2>; rel="next"' }]);
    await call('/v1/hosts', fresh);
    expect((await call('/v1/hosts', asking)).headers.get('link')).toContain('cursor=2');
    next('getOrg', [200, '{}', { link: '</v1/orgs/acme?page=2>; rel="next"' }]);
    expect((await call('/v1/orgs/acme', { token: secret() })).headers.has('link')).toBe(false);
  });

  const at = 'http://localhost/v1/hosts?page=2';
  test.each([
    ['<?page=2>; REL=Next', `<${at}>; REL=Next`],
    ['<?page=2>; rel="up next"', `<${at}>; rel="up next"`],
    ['<?page=2>; rel=next , <?page=2>; rel=prev', `<${at}>; rel=next, <${at}>; rel=prev`],
    [String.raw`<?page=2>; title="a\", b"; rel="next"`, String.raw`<${at}>; title="a\", b"; rel="next"`],
    ['<?page=2>; rel="nexts", <?page=2>; rel="x-next", <?page=2>; rel="next"; title="é"', null],
  ])('which of a `Link` header are links to pages: %s', async (link, expected) => {
    next('listHosts', [200, '[]', { link }]);
    expect((await call('/v1/hosts', { token: secret() })).headers.get('link')).toBe(expected);
  });
});

describe('a query has types', () => {
  test('it is checked as text, and goes on as it came', async () => {
    const bad = 'limit=0&since=1.5&active=yes&roles=owner,boss&tag=short&tag=ab,cd,ef';
    const { json } = await call(`/v1/orgs/acme/members?${bad}`);
    expect(json.errors).toMatchObject([
      { field: 'limit', message: 'expected an integer of 1 or more' },
      { field: 'since', message: 'expected an integer' },
      { field: 'active', message: 'expected true or false' },
      { field: 'roles', message: 'expected owner or guest' },
      { field: 'tag', message: 'expected at most 5 characters' },
    ]);
    const good = 'limit=010&since=-5&active=true&roles=owner,guest&roles=owner&tag=a,b&tag=c';
    expect((await call(`/v1/orgs/acme/members?${good}`)).status).toBe(200);
    expect(targets()).toEqual([`GET /v1/orgs/acme/members?${good}`]);
  });

  test('the document tells of it, of forms, pages and PUT, and is valid', async () => {
    const { text: found, json } = await call('/openapi.json');
    expect(await flawsIn(found)).toBeUndefined();
    const { parameters } = json.paths['/v1/orgs/{org}/members'].get;
    const told = (name: string) => (parameters as Told[]).find((one) => one.name === name)!;
    expect(told('limit').schema).toEqual({ type: 'integer', minimum: 1, description: 'how many' });
    const roles = { type: 'array', items: { type: 'string', enum: ['owner', 'guest'] } };
    expect(told('roles')).toMatchObject({ style: 'form', explode: false, schema: roles });
    expect(told('tag')).toMatchObject({ explode: true });
    expect(told('tag').schema).not.toHaveProperty('explode');
    expect(told('org')).toMatchObject({ in: 'path', required: true, schema: { pattern: '^[A-Za-z0-9_-]{1,64}$' } });
    const [region, host] = json.paths['/v1/hosts/{region}/{host}'].get.parameters;
    expect([region.schema.pattern, region.schema.examples, host.schema.examples]).toEqual([
      '^[A-Za-z0-9._~-]{1,128}$',
      ['1091'],
      [HOST],
    ]);
    expect(json.paths['/v1/orgs/{org}/members/{id}'].put).toMatchObject({ operationId: 'putMember', requestBody: {} });
    expect(json.paths['/v1/hosts'].get.responses[200].headers).toHaveProperty('Link');
    const all = json.paths['/bff/v1/orgs/{org}/member-overview/{id}'].get.parameters as Told[];
    const names = all.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['org', 'id', 'fields[others]', 'page_size[others]', 'fields[kept]']));
    expect(names).not.toContain('page_size[kept]');
  });
});

const ABOUT = '/bff/v1/orgs/acme/member-overview';

const states = async (body: string) => {
  next('getMember', [200, body]);
  const { json } = await call(`${ABOUT}/5?sections=manager,kept`, { token: secret() });
  return [json.meta.sections.manager.state, json.meta.sections.kept.state] as string[];
};

describe('an overview of such rows', () => {
  test('takes parameters of its path and members of a section, for a path and a query', async () => {
    next('getMember', [200, '{"id":5,"name":"a b","manager":8}']);
    next('listMembers', [200, '{"data":[{"id":7},{"id":8,"amount":2.50}],"links":{"next":"?page=2"}}']);
    const { json, text: found } = await call(`${ABOUT}/5?page_size[others]=9&fields[kept]=name&fields[others]=id`);
    expect(found).toContain('"manager":{"id":8,"amount":2.50}');
    expect(json).toMatchObject({
      data: { others: { data: [{ id: 7 }] }, kept: { items: [{}] } },
      meta: { complete: true },
    });
    expect(targets().toSorted()).toEqual([
      'GET /v1/hosts/kept?owner=a+b&kind=all',
      'GET /v1/orgs/acme/members',
      'GET /v1/orgs/acme/members/5',
      'GET /v1/orgs/acme/members?limit=9&since=5',
    ]);
  });

  test('reads by its id what is not in the list, of the same organisation, and again from copies alone', async () => {
    const token = secret();
    next('getMember', [200, '{"id":5,"name":true,"manager":80}']);
    const read = async (path: string) => (await call(path, { token })).json.meta.sections as object;
    expect(await read(`${ABOUT}/5`)).toMatchObject({ manager: { state: 'fresh' }, kept: { state: 'fresh' } });
    expect(targets()).toEqual(
      expect.arrayContaining(['GET /v1/orgs/acme/members/80', 'GET /v1/hosts/kept?owner=true&kind=all']),
    );
    const before = upstream.calls.length;
    await read(`${ABOUT}/5`);
    expect(upstream.calls).toHaveLength(before);
    await read('/bff/v1/orgs/other/member-overview/5');
    expect(targets()).toEqual(expect.arrayContaining(['GET /v1/orgs/other/members', 'GET /v1/orgs/other/members/5']));
  });

  test('has nothing to read where a member is null, and no use for what no value may be', async () => {
    expect(await states('{"id":5,"manager":null}')).toEqual(['not_applicable', 'not_applicable']);
    expect(await states('{"id":5,"manager":"../8","name":{}}')).toEqual(['failed', 'failed']);
    const token = secret();
    next('getMember', [200, '{"id":5,"manager":null}']);
    for (let times = 0; times < 2; times++)
      expect((await call(`${ABOUT}/5?sections=manager`, { token })).json.data).toEqual({ manager: null });
    expect(await states('{"id":5,"manager":7e0,"name":7e0}')).toEqual(['failed', 'failed']);
  });

  test('takes out of one list what each member names', async () => {
    const token = secret();
    next('listMembers', [200, '{"data":[{"id":7},{"id":8}],"links":{"next":null}}']);
    next('getMember', [200, '{"id":5,"manager":8}'], [200, '{"id":6,"manager":7}']);
    for (const [id, manager] of [
      [5, 8],
      [6, 7],
    ])
      expect((await call(`${ABOUT}/${id}?sections=manager`, { token })).json.data).toEqual({
        manager: { id: manager },
      });
  });

  test('asks nothing with a member that the query of the row may not have', async () => {
    const member = { read: rows.getMember, params: { org: 'acme', id: '5' } };
    const query = { since: from('member', 'name') };
    const sections = { member, others: { read: rows.listMembers, params: { org: 'acme' }, query } };
    const overviews = [overview('/bff/v1/since-overview', sections)];
    const own = openGateway({}, { ...orgs, overviews, upstream: new Upstream(orgs.table) });
    const found = [];
    for (const name of ['5', 'five', '5&x=1']) {
      own.upstream.next('getMember' as OperationId, answer(200, { id: 5, name }));
      const { json } = await own.call('/bff/v1/since-overview', { token: secret() });
      found.push(json.errors[0]?.code);
    }
    expect(found).toEqual([undefined, 'upstream_bad_response', 'upstream_bad_response']);
    const lists = own.upstream.calls.filter(({ target }) => !target.endsWith('/5'));
    expect(lists.map(({ target }) => target)).toEqual(['/v1/orgs/acme/members?since=5']);
  });

  test('names what it does not have once', async () => {
    const { json } = await call(`${ABOUT}/5?sections=none,none&sections=none&PageSize=5`);
    const code = 'unknown_name';
    expect(json.errors).toMatchObject(['sections', 'PageSize'].map((field) => ({ field, code })));
  });

  test('has no size of a page that the query of its row does not have', async () => {
    const { list } = defineRows({ list: { at: 'GET /v1/films', ...pageOf(film) } });
    const own = { table: tableOf({ list }), overviews: [overview('/bff/v1/films', { films: { read: list } })] };
    const asked = openGateway({}, { ...own, upstream: new Upstream(own.table) });
    const { json } = await asked.call('/bff/v1/films?page_size[films]=5');
    expect(json.errors).toMatchObject([{ field: 'page_size[films]', code: 'unknown_name' }]);
  });

  test('is at an unknown path where a parameter is not of its form', async () => {
    for (const path of ['/bff/v1/orgs/a.b/member-overview/5', `${ABOUT}/x`, '/bff/v1/orgs/acme/member-overview'])
      expect((await call(path)).code, path).toBe('unknown_endpoint');
    expect(upstream.calls).toEqual([]);
  });
});

/** What the compiler refuses, too. */
const unsaid = () => [
  // @ts-expect-error -- a parameter is missing
  overview('/bff/v1/x', { a: { read: rows.getMember, params: { id: '5' } } }),
  // @ts-expect-error -- a section that does not exist
  overview('/bff/v1/x', { a: { read: rows.listKept, query: { owner: from('none', 'id') } } }),
];

/** Without the look of the compiler. */
const make = defineRows as (more: object) => Readonly<Record<string, Operation>>;
const define = (more: object) => tableOf(make(more));

const film = resource('Film', { title: text('what it is called', 'Troy') });
const reads: Row = { at: 'GET /studios/{studio}/films/{id}', answer: film, group: 'films' };
const writes: Row = { at: 'PUT /studios/{studio}/films/{id}', answer: film };

describe('what cannot be is said in words', () => {
  test.each<readonly [words: string, more: Readonly<Record<string, Row>>]>([
    ['is not at a method and a path', { a: { ...reads, at: 'GET /a/{id}/b/{id}' } }],
    ['is not at a method and a path', { a: { ...reads, at: 'GET /a/x{id}' } }],
    ['is not at a method and a path', { a: { ...reads, at: 'GET /a/{constructor}' } }],
    ['a form for `di`, which is no parameter', { a: { ...reads, params: { di: 'slug' } } }],
    ...['.+', 'Slug', 'toString'].map(
      (form) =>
        [
          'has a parameter `id` whose form is not `digits`',
          { a: { ...reads, params: { id: form as 'slug' } } },
        ] as const,
    ),
    [
      'two of the rows `a`, `b` are at the same method and path',
      { a: reads, b: { ...reads, at: 'GET /studios/{studio}/films/{id}/' } },
    ],
    [
      'the rows `a`, `b` are at one path, and have other names',
      { a: reads, b: { ...writes, at: 'PUT /studios/{id}/films/{film}' } },
    ],
    [
      'invalidates one item of `films`, and its path does not begin with the parameters of `a`: /studios/{studio}/films/{id}',
      { a: reads, b: { ...writes, at: 'DELETE /studios/{studio}', invalidates: [{ item: 'films' }] } },
    ],
    ['has a body named `Film`, as another one is', { a: reads, b: { ...writes, answer: resource('Film', {}) } }],
    [
      'signs in: its path has no parameters',
      { a: { ...writes, body: { schema: film }, credential: 'none', signsIn: { as: 'film', token: 'title' } } },
    ],
    [
      'has a page with `nxt`, which',
      { a: { ...reads, ...pageOf(film), page: { items: '/results', nxt: '/a' } as never } },
    ],
    [
      '`/links/0`, which is no JSON Pointer',
      { a: { ...reads, ...pageOf(film), page: { items: '/results', next: '/links/0' } } },
    ],
    ...(['/a~1b', 'prev', '/first/0/x'] as const).map(
      (link) =>
        [
          `\`${link}\`, which is no JSON Pointer`,
          { a: { ...reads, ...pageOf(film), page: { items: '/results', links: ['/2nd', link] } } },
        ] as const,
    ),
    ['has no list at `/data`', { a: { ...reads, ...pageOf(film), page: { items: '/data' } } }],
    [
      '`links.next`, which is no JSON Pointer',
      { a: { ...reads, ...pageOf(film), page: { items: '/results', next: 'links.next' } } },
    ],
  ])('%s', (words, more) => {
    expect(() => define(more)).toThrow(TypeError);
    expect(() => define(more)).toThrow(words);
  });

  const { getMember, getOrg, listKept, listMembers } = rows;
  const { params } = { params: { org: 'acme', id: '5' } };
  const one = { read: getMember, params };
  const wrong: readonly (readonly [words: string, sections: object, path?: string])[] = [
    ['gives `getMember` no `org`', { a: { read: getMember, params: { id: '5' } } }],
    ['gives `getOrg` a `id`, which its path does not have', { a: { read: getOrg, params } }],
    [
      'takes from two sections',
      { one, two: one, a: { read: getMember, params: { org: from('one', 'name'), id: from('two', 'id') } } },
    ],
    [
      'looks in `listMembers`, which needs a `org`',
      { one, a: { read: getMember, params: { org: from('one', 'name'), id: from('one', 'id', listMembers) } } },
    ],
    [
      'looks in `listHosts`, which has items of any `org`',
      { one, a: { read: getMember, params: { org: 'mine', id: from('one', 'id', rows.listHosts) } } },
    ],
    [
      'looks in `getOrg`, which is no page',
      { one, a: { read: getMember, params: { ...params, id: from('one', 'id', getOrg) } } },
    ],
    [
      'one parameter of its path in a list',
      { one, a: { read: listKept, query: { owner: from('one', 'id', listKept) } } },
    ],
    ['takes `boss` of `one`, which an answer', { one, a: { read: listKept, query: { owner: from('one', 'boss') } } }],
    [
      'itself takes from another',
      {
        one,
        a: { read: listKept, query: { owner: from('one', 'id') } },
        b: { read: listKept, query: { owner: from('a', 'items') } },
      },
    ],
    ['a parameter `no`', { a: { read: listKept, query: { owner: fromPath('no') } } }],
    [
      'has a parameter `id` in its path',
      { a: { read: listKept, query: { owner: fromPath('org') } } },
      '/bff/v1/x/:org/:id',
    ],
    ['is not at a path such as', { a: { read: listKept, query: { owner: fromPath('id') } } }, '/bff/v1/x/:id/:id'],
  ];
  const at = wrong.map(([words, sections, path = '/bff/v1/x']) => [words, sections, path] as const);
  test.each(at)('an overview: %s', (words, sections, path) => {
    const compose = overview as (path: string, all: object) => Overview;
    expect(() => compose(path, sections)).toThrow(words);
  });

  test('a write of an item is not one of the list that has it, where the list is at no such path', () => {
    const { list, film: own } = make({
      list: { at: 'GET /films', ...pageOf(film), group: 'films' },
      film: { ...reads, at: 'GET /films/{id}' },
    });
    const put = make({ put: { ...writes, at: 'PUT /films/{id}', invalidates: [{ item: 'films' }] } });
    const found = overview('/bff/v1/x', {
      one,
      a: { read: own!, params: { id: from('one', 'id', list) } },
    });
    const table = tableOf({ ...rows, list: list!, film: own!, ...put });
    expect(() => openGateway({}, { table, overviews: [found] })).toThrow('`put` does not invalidate with its item');
  });

  test('and by the compiler', () => {
    expect(unsaid).toThrow();
  });
});
