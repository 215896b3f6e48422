import { operations } from '../../support/account-api.ts';
import { each, integers, type Rows } from '../rows.ts';

const ID = 'getSubscription';
const policy = (text: unknown) => JSON.stringify({ [ID]: text });
const SECONDS = 'to be a number of seconds from 0 to 31536000';

export const rows: readonly Rows[] = [
  {
    variable: 'UPSTREAM_BASE_URL',
    good: [
      ['https://upstream.example', 'https://upstream.example/'],
      ['http://127.0.0.1:1/', 'http://127.0.0.1:1/'],
      ['https://upstream.example:65535/base/', 'https://upstream.example:65535/base'],
      ['HTTPS://Upstream.example//', 'https://upstream.example/'],
      ['http://[::1]:8080', 'http://[::1]:8080/'],
    ],
    meaning: ({ upstreamBaseUrl }) => upstreamBaseUrl?.href,
    bad: [
      ...each(
        ['x', 'upstream.example', 'localhost:8080', 'ftp://upstream.example', '//upstream.example', '/base', 'http//a'],
        'a URL whose scheme is http or https',
      ),
      ...each(
        [
          'https://',
          'http:///base',
          'https://:443',
          'https://a b',
          'https://user@',
          'http://[::1',
          'https://10.0.0.256',
        ],
        'a URL whose host is a name or an IP address',
      ),
      ...each(
        ['https://a:0', 'https://a:65536', 'http://a:80x/base', 'http://[::1]:99999'],
        'a URL whose port is an integer from 1 to 65535',
      ),
      ...each(
        ['https://user:key@upstream.example', 'https://user@upstream.example', 'https://:key@upstream.example/base'],
        'a URL without a user name and password',
      ),
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
      [policy({}), { fresh: 30, stale: 300, onError: 3600 }],
      [policy({ fresh: 0.5 }), { fresh: 0.5, stale: 300, onError: 3600 }],
      [policy({ fresh: 0, stale: 0, on_error: 0 }), { fresh: 0, stale: 0, onError: 0 }],
      [policy({ on_error: 31_536_000 }), { fresh: 30, stale: 300, onError: 31_536_000 }],
      [policy(false), undefined],
    ],
    bad: [
      ...each(['x', '{', "{'getSubscription':false}", '[]', 'null', '1', '"x"', 'false'], 'a JSON object'),
      ...each(
        [policy(true), policy(null), policy('x'), policy(30), policy([30])],
        `${ID} to be false, or an object with fresh, stale or on_error`,
      ),
      ...each(
        [policy({ fresh: -1 }), policy({ fresh: '1' }), policy({ fresh: 31_536_001 }), policy({ fresh: null })],
        `${ID}.fresh ${SECONDS}`,
      ),
      [`{"${ID}":{"fresh":1e999}}`, `${ID}.fresh ${SECONDS}`],
      [policy({ fresh: 1, stale: false }), `${ID}.stale ${SECONDS}`],
      [policy({ on_error: {} }), `${ID}.on_error ${SECONDS}`],
      [policy({ frehs: 1 }), `${ID} to have fresh, stale and on_error only, not "frehs"`],
      [policy({ onError: 1 }), `${ID} to have fresh, stale and on_error only, not "onError"`],
      ['{"getSubscripton":{"fresh":1}}', 'only ids of operations, not "getSubscripton"'],
      ['{"nothing at all":false}', 'only ids of operations, not "nothing at all"'],
      ['{"__proto__":false}', 'only ids of operations, not "__proto__"'],
      ['{"":false}', 'only ids of operations, not ""'],
      ['{"getApiKey":{"fresh":1}}', 'no policy of getApiKey, whose answers are never cached'],
      ['{"updateReferralConfig":false}', 'no policy of updateReferralConfig, whose answers are never cached'],
    ],
  },
];
