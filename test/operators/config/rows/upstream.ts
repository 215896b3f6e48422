import { operations } from '../../../support/account-api.ts';
import { each, integers, type Rows } from '../rows.ts';

const ID = 'getSubscription';
const policy = (text: unknown) => JSON.stringify({ [ID]: text });
const NO_NAME = 'a URL whose host is a name or an IP address';
const NO_PORT = 'a URL whose port is an integer from 1 to 65535';
const SECONDS = 'to be a number of seconds from 0 to 31536000';

export const rows: readonly Rows[] = [
  {
    variable: 'UPSTREAM_BASE_URL',
    good: [
      ['https://upstream.example', 'https://upstream.example/'],
      ['http://127.0.0.1:1/', 'http://127.0.0.1:1/'],
      ['https://upstream.example:65535/base/', 'https://upstream.example:65535/base'],
      ['http://[::1]:8080', 'http://[::1]:8080/'],
    ],
    meaning: ({ upstreamBaseUrl }) => upstreamBaseUrl?.href,
    bad: [
      ...each(
        ['x', 'localhost:8080', 'ftp://a.example', '//a.example', '/base', 'http//a'],
        'a URL whose scheme is http or https',
      ),
      ...each(['https://', 'http:///base', 'https://:443', 'https://a b', 'https://user@', 'http://[::1'], NO_NAME),
      ...each(['https://a:0', 'https://a:65536', 'http://a:80x/base', 'http://[::1]:99999'], NO_PORT),
      ...each(['https://user:key@a.example', 'https://:key@a.example/base'], 'a URL without a user name and password'),
      ...each(['https://upstream.example/?key=1', 'https://upstream.example?x'], 'a URL without a query'),
      ...each(['https://upstream.example/#x', 'https://upstream.example/base#/x'], 'a URL without a fragment'),
    ],
  },
  integers('UPSTREAM_TIMEOUT_MS', 1, 600_000),
  integers('REQUEST_TIMEOUT_MS', 1, 600_000),
  integers('UPSTREAM_MAX_CONNECTIONS', 1, 65_535),
  integers('UPSTREAM_MAX_BODY_BYTES', 1, 268_435_456),
  integers('MAX_BODY_BYTES', 1, 16_777_216),
  integers('CACHE_MAX_BYTES', 0, 17_179_869_184),
  integers('RATE_LIMIT_PER_MINUTE', 0, 1_000_000_000),
  {
    variable: 'CACHE_POLICY',
    meaning: ({ policyOf }) => policyOf(operations[ID]),
    good: [
      ['{}', { fresh: 30, stale: 300, onError: 3600 }],
      [policy({ fresh: 0.5 }), { fresh: 0.5, stale: 300, onError: 3600 }],
      [policy({ fresh: 0, stale: 0, on_error: 0 }), { fresh: 0, stale: 0, onError: 0 }],
      [policy(false), undefined],
    ],
    bad: [
      ...each(['x', '{', "{'getSubscription':false}", '[]', 'null', '1', '"x"', 'false'], 'a JSON object'),
      ...each([true, null, 'x', 30, [30]].map(policy), `${ID} to be false, or an object with fresh, stale or on_error`),
      ...each(
        [-1, '1', 31_536_001, null].map((fresh) => policy({ fresh })),
        `${ID}.fresh ${SECONDS}`,
      ),
      [policy({ fresh: 1, stale: false }), `${ID}.stale ${SECONDS}`],
      [policy({ on_error: {} }), `${ID}.on_error ${SECONDS}`],
      [policy({ frehs: 1 }), `${ID} to have fresh, stale and on_error only, not "frehs"`],
      ['{"getSubscripton":{"fresh":1}}', 'only ids of operations, not "getSubscripton"'],
      ['{"__proto__":false}', 'only ids of operations, not "__proto__"'],
      ['{"getApiKey":{"fresh":1}}', 'no policy of getApiKey, whose answers are never cached'],
    ],
  },
];
