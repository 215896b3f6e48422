import { onTestFinished } from 'vitest';
import type { Store } from '../../src/store/port.ts';
import { type Call, json, perCall, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { memoryStore } from '../support/stores.ts';
import { ILIAD, library, ODYSSEY } from './library.ts';

const TITLES: Readonly<Record<string, string>> = { [ODYSSEY]: 'The Odyssey', [ILIAD]: 'The Iliad' };

const isbnIn = ({ path }: Call) => path.split('/')[3] ?? '';

const isOfBook = ({ method, path }: Call) => method === 'GET' && /^\/v1\/books\/[^/]+$/.test(path);
const isLoan = ({ method, path }: Call) => method === 'POST' && /^\/v1\/books\/[^/]+\/loans\/$/.test(path);

/** The library's own server: two books, which are lent when somebody asks for them. */
export function scriptLibrary(upstream: ScriptedUpstream, token: string): void {
  const lent = new Set<string>();
  const bookOf = (isbn: string) => ({ isbn, title: TITLES[isbn], on_loan: lent.has(isbn) });
  const page = () => ({
    count: 2,
    next: `${upstream.url}/v1/books?page=2`,
    previous: null,
    results: Object.keys(TITLES).map(bookOf),
  });
  upstream
    .on(
      'GET /v1/books',
      perCall(() => json(200, page())),
    )
    .on(
      isOfBook,
      perCall((to) => (TITLES[isbnIn(to)] ? json(200, bookOf(isbnIn(to))) : json(404, { code: 'lost' }))),
    )
    .on(
      isLoan,
      perCall((to) => {
        const isbn = isbnIn(to);
        if (lent.has(isbn)) return json(409, { code: 'on_loan' });
        lent.add(isbn);
        return json(201, { id: lent.size, isbn, weeks: 3 });
      }),
    )
    .on('POST /v1/login', json(200, { access_token: token }))
    .on(({ headers, path }) => path !== '/v1/login' && headers['authorization'] !== `Token ${token}`, json(401, {}));
}

type Options = NonNullable<Parameters<typeof startGateway>[1]>;

/** A gateway before an upstream of its own, both with these tables. */
export async function startLibrary(
  upstream: ScriptedUpstream,
  { env, ...options }: Options = {},
): Promise<TestGateway> {
  const gateway = await startGateway(upstream.url, {
    ...library,
    env: { RATE_LIMIT_PER_MINUTE: '0', ...env },
    clock: clockOfDeadlines(),
    ...options,
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

export interface Library {
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
  readonly store: Store;
  readonly token: string;
  /** By the reader. */
  readonly ask: (path: string, options?: Partial<CallOptions>) => Promise<TextAnswer>;
  /** What the upstream has been asked so far. */
  readonly asked: () => readonly string[];
}

async function openUpstream(token: string): Promise<ScriptedUpstream> {
  const upstream = await startUpstream();
  onTestFinished(async () => {
    await upstream.close();
    upstream.assertNoUnexpected();
  });
  scriptLibrary(upstream, token);
  return upstream;
}

/** At the end of the test an upstream call that nobody expected fails it. */
export async function openLibrary(options: Options = {}): Promise<Library> {
  const token = secret();
  const upstream = await openUpstream(token);
  const clock = clockOfDeadlines();
  const store = memoryStore(clock);
  const gateway = await startLibrary(upstream, { clock, store, ...options });
  return {
    upstream,
    gateway,
    store,
    token,
    ask: (path, asking = {}) => call(gateway.url, { path, token, ...asking }),
    asked: () => upstream.calls.map(({ method, target }) => `${method} ${target}`),
  };
}
