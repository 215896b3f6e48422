import { afterAll, beforeAll, expect, test } from 'vitest';
import { call } from '../support/http.ts';
import { expectProblem } from '../support/problem.ts';
import { json, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { startWorkerd, type Workerd } from '../support/workerd.ts';
import { FAULTS, GOOD, GOOD_ANSWERS } from '../node/faults.ts';

/** Bytes of upstream and client where the platform brings an HTTP of its own. */

let upstream: ScriptedUpstream;
let workerd: Workerd;

beforeAll(async () => {
  upstream = await startUpstream();
  workerd = await startWorkerd({ UPSTREAM_BASE_URL: upstream.url, RATE_LIMIT_PER_MINUTE: '0' });
}, 60_000);

afterAll(async () => {
  await workerd.kill();
  await upstream.close();
});

const PATH = '/api/v2/subscription/';
const READ = `GET ${PATH}`;
const WRITE = 'POST /api/v2/apikey/';

/** The platform says of what is not HTTP only that the connection was lost. */
const LOST = 'upstream_unreachable';

/** A few that matter, and the code where it is another than on Node. Time-outs need a timer. */
const CHOSEN: Readonly<Record<string, string | undefined>> = {
  'a reset before an answer': undefined,
  'a reset in the body': undefined,
  'a body shorter than its length': undefined,
  'two lengths': LOST,
  'a garbage line': LOST,
  'a 101': undefined,
  '50 MB': undefined,
  'chunks without end': undefined,
  'a gzip bomb': undefined,
  '100,000 levels': undefined,
  HTML: undefined,
  'no UTF-8': undefined,
};

const ask = () => call(workerd.url, { path: PATH, token: secret() });

const rows = Object.entries(CHOSEN).map(([name, code]) => ({ code, ...FAULTS.find((one) => one.name === name)! }));

test.each(rows)('on workerd, $name', async ({ what, code, outcome }) => {
  await workerd.pass(600); // the circuit is closed
  const [status, usual] = outcome;
  upstream.on(READ, what).on(WRITE, what);
  expectProblem(await ask(), { status, code: code ?? usual });
  const before = upstream.calls.length;
  const written = await call(workerd.url, { path: '/api/v2/apikey/', token: secret(), body: {} });
  expect(expectProblem(written, { status, code: code ?? usual }).outcome).toBe('unknown');
  expect(upstream.calls.length - before).toBe(1);
  upstream.on(READ, json(200, GOOD));
  for (let n = 0; n < 3; n++) expect(await ask()).toMatchObject({ status: 200, text: GOOD });
});

test.each(['chunks', 'gzip', 'until the connection closes', 'a 102, an unknown one and 103s before it'])(
  'on workerd, %s is as good as any',
  async (name) => {
    upstream.on(READ, GOOD_ANSWERS[name]!);
    expect(await ask()).toMatchObject({ status: 200, text: GOOD });
  },
);
