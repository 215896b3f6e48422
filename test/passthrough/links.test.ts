import { describe, expect, test } from 'vitest';
import { exampleBody } from '../support/examples.ts';
import { requestText } from '../support/raw-client.ts';
import { json, perCall } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const LIST = '/api/v2/payment/transaction/';

interface Page {
  readonly next: string | null;
  readonly previous?: string | null;
}

const pageOf = (text: string) => JSON.parse(text) as Page;

describe('a link to another page', () => {
  const stage = useWorld();
  const origin = () => stage.gateway.url;

  /** What the client gets for a page whose `next` is this JSON text. */
  const nextFor = async (link: string) => {
    const text = `{"count":1,"next":${link},"previous":null,"results":[]}`;
    stage.upstream.on(`GET ${LIST}`, json(200, text));
    const answer = await stage.call({ path: LIST, token: secret() });
    expect({ status: answer.status, text: answer.text }).toEqual({ status: 200, text: expect.stringMatching(/^\{/) });
    return pageOf(answer.text).next;
  };

  const absolute = (pathAndQuery: string) => JSON.stringify(stage.upstream.url + pathAndQuery);

  test.each([
    ['the upstream', (query: string) => absolute(LIST + query)],
    ['an upstream that calls itself https', (query: string) => absolute(LIST + query).replace('http:', 'https:')],
    ['a host that is not the upstream', (query: string) => JSON.stringify(`https://internal.example${LIST}${query}`)],
    ['a host with a port and a user', (query: string) => JSON.stringify(`http://u@internal.example:81${LIST}${query}`)],
    ['no host', (query: string) => JSON.stringify(LIST + query)],
    ['no scheme', (query: string) => JSON.stringify(`//internal.example${LIST}${query}`)],
    ['no path', (query: string) => JSON.stringify(query)],
    ['an escaped solidus', (query: string) => absolute(LIST + query).replaceAll('/', String.raw`\/`)],
    ['an escaped ampersand', (query: string) => absolute(LIST + query).replaceAll('&', String.raw`\u0026`)],
  ])('of %s points at the gateway', async (_, link) => {
    const query = '?page=2&page_size=5&x=%7e%2F+&x=a%20b';
    expect(await nextFor(link(query))).toBe(`${origin()}${LIST}${query}`);
  });

  test('keeps a cursor as it is', async () => {
    const query = '?starting_after=2026-06-09T11:50:08.101337-07:00&search=%C3%A9';
    expect(await nextFor(absolute(`/api/v2/proxy/activity/${query}`))).toBe(
      `${origin()}/api/v2/proxy/activity/${query}`,
    );
  });

  test('stays null', async () => {
    expect(await nextFor('null')).toBeNull();
  });

  test.each(['http://[', 'javascript:alert(1)', 'x:@elsewhere.example/', 'mailto:someone', 'data:text/html,x'])(
    'becomes null where it is no link to a page: %s',
    async (link) => {
      expect(await nextFor(JSON.stringify(link))).toBeNull();
    },
  );

  test('is changed at the top only, and nothing else is', async () => {
    const inside = `{"next":"${stage.upstream.url}/x","previous":1.50}`;
    const page = (next: string) =>
      `\r\n{ "count" : 25.0,"next"\t: ${next} ,\n"x\\"next":"${stage.upstream.url}/y", "results":[${inside}],"big":9007199254740993123}`;
    stage.upstream.on(`GET ${LIST}`, json(200, page(absolute(`${LIST}?page=2`))));
    const answer = await stage.call({ path: LIST, token: secret() });
    expect(answer.text).toBe(page(`"${origin()}${LIST}?page=2"`));
  });

  test('is left alone in what is no page', async () => {
    const text = exampleBody('getSubscription', { next: `${stage.upstream.url}/x` });
    stage.upstream.on('GET /api/v2/subscription/', json(200, text));
    expect((await stage.call({ path: '/api/v2/subscription/', token: secret() })).text).toBe(text);
  });

  test('may be missing, as previous is from activity', async () => {
    const text = '{"count":1,"next":null,"results":[]}';
    stage.upstream.on('GET /api/v2/proxy/activity/', json(200, text));
    expect((await stage.call({ path: '/api/v2/proxy/activity/', token: secret() })).text).toBe(text);
  });

  test('has the host that each request names, from the cache too', async () => {
    stage.upstream.once(`GET ${LIST}`, json(200, `{"next":${absolute(`${LIST}?page=2`)},"previous":null}`));
    const token = secret();
    for (const host of ['one.example', 'two.example:8443', '[::1]:8787', '198.51.100.7']) {
      const headers = [
        ['Host', host],
        ['Authorization', `Token ${token}`],
        ['X-Forwarded-Host', 'elsewhere.example'],
      ] as const;
      const answer = await stage.raw(requestText({ target: LIST, headers }));
      expect(pageOf(answer.body).next).toBe(`http://${host}${LIST}?page=2`);
    }
  });
});

describe('pages', () => {
  const stage = useWorld();

  test('can be followed to the last one and back', async () => {
    const last = 4;
    const linkTo = (page: number) =>
      page < 1 || page > last ? null : `${stage.upstream.url}${LIST}?page=${page}&ordering=-id`;
    stage.upstream.on(
      ({ method, path }) => method === 'GET' && path === LIST,
      perCall(({ target }) => {
        const page = Number(new URLSearchParams(target.split('?')[1]).get('page') ?? 1);
        const text = exampleBody('listTransactions', {
          count: last,
          next: linkTo(page + 1),
          previous: linkTo(page - 1),
        });
        return json(200, text);
      }),
    );
    const token = secret();
    const seen: string[] = [];
    const follow = async (way: 'next' | 'previous', from: string) => {
      for (let link: string | null | undefined = from; link;) {
        expect(link.startsWith(stage.gateway.url)).toBe(true);
        const path = link.slice(stage.gateway.url.length);
        seen.push(path);
        link = pageOf((await stage.call({ path, token })).text)[way];
      }
    };
    await follow('next', `${stage.gateway.url}${LIST}?ordering=-id`);
    await follow('previous', `${stage.gateway.url}${LIST}?page=4&ordering=-id`);
    const numbered = [2, 3, 4, 4, 3, 2, 1].map((page) => `${LIST}?page=${page}&ordering=-id`);
    expect(seen).toEqual([`${LIST}?ordering=-id`, ...numbered]);
    expect(stage.upstream.calls.map(({ target }) => target)).toEqual([...new Set(seen)]);
  });
});

describe.each(['https://api.portico.example', 'https://portico.example/of/api/'])('with PUBLIC_URL=%s', (url) => {
  const stage = useWorld({ PUBLIC_URL: url });
  const begins = url.replace(/\/$/, '');

  test('links begin with it, whatever the request names', async () => {
    stage.upstream.on(`GET ${LIST}`, json(200, { next: `${stage.upstream.url}${LIST}?page=3`, previous: null }));
    const { text } = await stage.call({ path: LIST, token: secret() });
    expect(pageOf(text).next).toBe(`${begins}${LIST}?page=3`);
  });

  test('the type of a problem leads to its page there', async () => {
    const { json: problem } = await stage.call({ path: '/api/nothing' });
    const type = `${URL.parse(begins)?.pathname.replace(/\/$/, '')}/problems/unknown_endpoint`;
    expect(problem).toMatchObject({ type, instance: '/api/nothing' });
  });
});

describe.each(['/up/stream', '/up/stream/'])('with a base URL of path %s', (base) => {
  const stage = useWorld({}, { base });
  const below = `/up/stream${LIST}`;

  test('calls go below it, and links lose it', async () => {
    const links = { next: `${stage.upstream.url}${below}?page=3`, previous: `${LIST}?page=1` };
    stage.upstream.on(`GET ${below}`, json(200, links));
    const { text } = await stage.call({ path: `${LIST}?page=2`, token: secret() });
    const here = stage.gateway.url + LIST;
    expect(pageOf(text)).toEqual({ next: `${here}?page=3`, previous: `${here}?page=1` });
    expect(stage.upstream.calls.map(({ target }) => target)).toEqual([`${below}?page=2`]);
  });

  test('a link elsewhere keeps its path', async () => {
    stage.upstream.on(`GET ${below}`, json(200, { next: `https://internal.example${LIST}?page=3`, previous: null }));
    const { text } = await stage.call({ path: LIST, token: secret() });
    expect(pageOf(text).next).toBe(`${stage.gateway.url}${LIST}?page=3`);
  });
});
