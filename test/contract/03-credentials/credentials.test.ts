import { expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { expectProblem } from '../../support/problem.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';

const VISIBLE = Array.from({ length: 94 }, (_, at) => String.fromCharCode(0x21 + at)).join('');

everywhere(
  says('`Authorization: Token <key>` or `Bearer <key>` (sent on as `Token`), 1 to 4096 visible ASCII characters'),
  async ({ ask, upstream }) => {
    const keys = [secret(), secret().padEnd(4096, 'k'), `${secret()}${VISIBLE}`];
    for (const key of keys) {
      for (const scheme of ['Token', 'token', 'Bearer', 'BEARER  ']) {
        const headers = { authorization: `${scheme} ${key}`, 'cache-control': 'no-store' };
        expect((await ask('getSubscription', { token: null, headers })).status).toBe(200);
      }
      expect(upstream.callsOf(key).map((call) => call.headers['authorization'])).toEqual(Array(4).fill(`Token ${key}`));
    }
  },
);

everywhere(
  says('Missing or malformed: 401 `unauthenticated` with `WWW-Authenticate: Token`, no call.'),
  async ({ ask, upstream }) => {
    const short = '|Token|Token   |abcdef|Basic eDp5|Tokenabc|Token abc def|Token abc, Token def|Token a\tb|Token é';
    const malformed = [...short.split('|'), `Token ${'k'.repeat(4097)}`];
    for (const authorization of [undefined, ...malformed]) {
      for (const id of ['getSubscription', 'getApiKey', 'createApiKey'] as const) {
        const got = await ask(id, { token: null, headers: authorization === undefined ? {} : { authorization } });
        expectProblem(got, { status: 401, code: 'unauthenticated' });
        expect(got.headers.get('www-authenticate')).toBe('Token');
      }
    }
    expect(upstream.calls.filter(({ token }) => ['', ...malformed].includes(token))).toEqual([]);
  },
);

everywhere(says('Social register and login take none and forward none.'), async ({ ask, upstream }) => {
  for (const id of ['registerSocial', 'loginSocial'] as const) {
    for (const token of [null, secret()]) expect((await ask(id, { token })).status).toBe(200);
    expect(upstream.callsTo(id).map(({ headers }) => headers['authorization'])).toEqual([undefined, undefined]);
  }
});

const { ask, upstream } = openGateway();

const detail = async (headers: Record<string, string>) =>
  ((await ask('getSubscription', { token: null, headers })).json as { readonly detail: string }).detail;

test('a 401 says which: no key, one that cannot be read, one that the upstream does not accept', async () => {
  expect(await detail({})).toMatch(/has no `Authorization` header/);
  expect(await detail({ authorization: 'Basic abc' })).toMatch(/cannot be read/);
  upstream.next('getSubscription', { status: 401, headers: {}, body: { text: '{}' } });
  expect(await detail({ authorization: `Token ${secret()}` })).toMatch(/upstream does not accept this key/);
});
