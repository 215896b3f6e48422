import { onTestFinished, test, type TestOptions } from 'vitest';
import { testClock } from './clock.ts';
import {
  answerOf,
  askBy,
  type Asked,
  type Asking,
  checkComplaints,
  type Env,
  headersOf,
  linesOf,
  openGateway,
  startGateway,
  textOf,
} from './gateway.ts';
import { openFleet } from './fleet.ts';
import { call as send, stream } from './http.ts';
import { secret } from './secrets.ts';
import { Upstream } from './upstream.ts';
import { startWorkerd, type Workerd } from './workerd.ts';

const STAGES = ['process', 'node', 'workerd', 'fleet'] as const;

type StageName = (typeof STAGES)[number];

interface StageOptions {
  /** Variables, besides those that a stage needs itself. Each set of them is one more workerd in a run: few are used. */
  readonly env?: Env;
  /** Where the sentence cannot be seen. */
  readonly not?: readonly StageName[];
  /** The test uses `pass`. On workerd it moves the time of day, and no timer. */
  readonly time?: boolean;
}

/**
 * The same test on each stage: the gateway in this process; behind sockets of Node; in workerd; and two instances with one
 * store, which are asked in turn.
 */
export function everywhere(
  name: string,
  body: (stage: Asked) => Promise<unknown>,
  { env = {}, not = [], time = false }: StageOptions = {},
): void {
  for (const stage of STAGES.filter((one) => !not.includes(one))) {
    test(`${name} [${stage}]`, OF_STAGE[stage], async () => void (await body(await OPENED[stage](env, time))));
  }
}

/** To start a workerd takes its time on a busy machine. */
const OF_STAGE: Readonly<Record<StageName, TestOptions>> = {
  process: {},
  node: {},
  workerd: { timeout: 60_000 },
  fleet: {},
};

const OPENED: Readonly<Record<StageName, (env: Env, time: boolean) => Promise<Asked>>> = {
  process: async (env) => openGateway(env),
  node: onNode,
  workerd: onWorkerd,
  fleet: inFleet,
};

/** By sockets, to wherever the gateway is. */
function callsOver(url: string, me: string): Pick<Asked, 'ask' | 'call' | 'stream'> {
  const optionsOf = (path: string, asking: Asking) => {
    const { body, method = body === undefined ? 'GET' : 'POST', signal } = asking;
    const headers = headersOf({ token: me, ...asking });
    return { path, method, headers, body: textOf(body), ...(signal && { signal }) };
  };
  const call: Asked['call'] = async (path, asking = {}) => {
    const got = await send(url, optionsOf(path, asking));
    return answerOf({ status: got.status, headers: fromPairs(got), text: async () => got.text });
  };
  return {
    ask: askBy(call),
    call,
    async stream(path, asking = {}) {
      const { lines, ...got } = await stream(url, optionsOf(path, asking));
      return linesOf({ status: got.status, headers: fromPairs(got) }, lines);
    },
  };
}

function fromPairs({ headers, cookies }: Pick<Awaited<ReturnType<typeof send>>, 'headers' | 'cookies'>): Headers {
  const all = new Headers(Object.entries(headers).filter(([name]) => name !== 'set-cookie'));
  for (const cookie of cookies) all.append('set-cookie', cookie);
  return all;
}

async function onNode(env: Env): Promise<Asked> {
  const upstream = new Upstream();
  const clock = testClock();
  const behind = await upstream.listen();
  const gateway = await startGateway(behind.url, { env, clock });
  onTestFinished(async () => {
    await gateway.close();
    await behind.close();
    checkComplaints(upstream);
  });
  const me = secret();
  const pass = (seconds: number) => clock.pass(seconds);
  return { ...callsOver(gateway.url, me), upstream, clock, pass, idle: gateway.idle, me };
}

const idle = () => Promise.reject(new Error('nobody knows when a worker is idle: wait for a call of the upstream'));

const workerds = new Map<string, Promise<{ readonly workerd: Workerd; readonly upstream: Upstream }>>();

/** One for each set of variables and process of tests. */
async function workerdWith(env: Env) {
  const upstream = new Upstream();
  const { url } = await upstream.listen();
  const workerd = await startWorkerd({ UPSTREAM_BASE_URL: url, RATE_LIMIT_PER_MINUTE: '0', ...env });
  return { workerd, upstream };
}

/** Between two tests on one workerd: circuits are closed again, and limits are new. */
const BETWEEN_SECONDS = 600;

async function onWorkerd(env: Env): Promise<Asked> {
  const name = JSON.stringify(env);
  const opening = workerds.get(name) ?? workerdWith(env);
  workerds.set(name, opening);
  const { workerd, upstream } = await opening;
  await workerd.pass(BETWEEN_SECONDS);
  await callsOver(workerd.url, secret()).call('/api/v2/apikey/1/'); // lets one call through, and closes the circuit
  await workerd.pass(BETWEEN_SECONDS);
  upstream.calls.length = 0;
  onTestFinished(() => checkComplaints(upstream));
  const me = secret();
  return { ...callsOver(workerd.url, me), upstream, clock: testClock(), pass: workerd.pass, idle, me };
}

/** Two instances, which are asked in turn. */
async function inFleet(env: Env, time: boolean): Promise<Asked> {
  const { upstream, instances, clock } = await openFleet(env, { time });
  const me = secret();
  let turn = 0;
  const next = () => instances[turn++ % instances.length]!;
  return {
    ask: (id, asking) => next().ask(id, { token: me, ...asking }),
    call: (path, asking) => next().call(path, { token: me, ...asking }),
    stream: (path, asking) => next().stream(path, { token: me, ...asking }),
    upstream,
    clock,
    pass: (seconds) => clock.pass(seconds),
    idle: async () => void (await Promise.all(instances.map((one) => one.idle()))),
    me,
  };
}
