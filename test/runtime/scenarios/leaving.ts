import { expect } from 'vitest';
import { call } from '../../support/http.ts';
import { openSocket, type RawSocket } from '../../support/raw-client.ts';
import { barrier, type Call, hang, hold, json, reply, type ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { secret } from '../../support/secrets.ts';
import type { Running } from '../node-gateway.ts';

/** A gateway that hears of it when a client leaves, and nothing of which is over by itself while a test lasts. */
export interface LeavingStage {
  readonly gateway: Pick<Running, 'records' | 'until'> & { readonly url: string };
  readonly upstream: ScriptedUpstream;
  leave(socket: RawSocket): void;
}

interface LeavingScenario {
  readonly name: string;
  run(stage: LeavingStage): Promise<void>;
}

/** Longer than any test may take: an upstream call that ends was cancelled, and has not run out of time. */
export const PATIENCE = { UPSTREAM_TIMEOUT_MS: '300000', REQUEST_TIMEOUT_MS: '300000' } as const;

const PATH = '/api/v2/subscription/';
const NOON = '2026-06-09T12:00:00-07:00';
const SUBSCRIPTION = { id: 1, plan: 2, payment_method: null };

interface Ask {
  readonly token: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** A client on a connection of its own, who has asked. */
async function ask({ gateway }: LeavingStage, { token, path = PATH, headers = {}, body }: Ask): Promise<RawSocket> {
  const { port, host } = new URL(gateway.url);
  const text = body === undefined ? '' : JSON.stringify(body);
  const fields = Object.entries({
    host,
    authorization: `Token ${token}`,
    ...(body !== undefined && { 'content-type': 'application/json', 'content-length': String(text.length) }),
    ...headers,
  });
  const socket = await openSocket(Number(port));
  const lines = [`${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1`, ...fields.map((field) => field.join(': '))];
  await socket.write(`${lines.join('\r\n')}\r\n\r\n${text}`);
  return socket;
}

type Seen = Pick<Call, 'headers' | 'path'>;

/** A read that is never cached, and never held up here. */
const ASIDE = '/api/v2/apikey/1/';

/** Calls with this credential: of this scenario, and of no other. */
const by = (token: string) => (one: Seen) => one.headers['authorization'] === `Token ${token}` && one.path !== ASIDE;

/**
 * Resolves when the gateway has taken in what was sent to it before: it has answered others meanwhile. And when its
 * store has told it what it asked of this account: that is told in order, and one who asked later has been answered.
 */
async function settled({ gateway, upstream }: LeavingStage, token: string = secret()): Promise<void> {
  for (let round = 0; round < 5; round++) await call(gateway.url, { path: '/livez' });
  upstream.on(
    ({ headers, path }) => headers['authorization'] === `Token ${token}` && path === ASIDE,
    json(200, { id: 1, key: null, label: '', created_at: NOON, updated_at: NOON }),
  );
  expect((await call(gateway.url, { path: ASIDE, token })).status).toBe(200);
}

/** Resolves when the gateway has heard of those who left before: it has of one who left after them. */
async function heard(stage: LeavingStage): Promise<void> {
  const token = secret();
  stage.upstream.on(by(token), hang());
  const socket = await ask(stage, { token });
  const [sent] = await stage.upstream.waitForCalls(1, by(token));
  stage.leave(socket);
  await stage.upstream.disconnected(sent!);
  await settled(stage);
}

export const leavingScenarios: readonly LeavingScenario[] = [
  {
    name: 'when the last reader leaves, and not before, the upstream call is ended',
    async run(stage) {
      const token = secret();
      stage.upstream.on(by(token), hang());
      const first = await ask(stage, { token });
      const [sent] = await stage.upstream.waitForCalls(1, by(token));
      let isCut = false;
      const cut = stage.upstream.disconnected(sent!).then(() => (isCut = true));
      const last = await ask(stage, { token });
      await settled(stage, token);
      stage.leave(first);
      await heard(stage);
      expect(isCut).toBe(false);
      stage.leave(last);
      await cut;
      expect(stage.upstream.callsTo(by(token))).toHaveLength(1);
      stage.upstream.on(by(token), json(200, SUBSCRIPTION));
      expect(await call(stage.gateway.url, { path: PATH, token })).toMatchObject({ status: 200, json: SUBSCRIPTION });
    },
  },
  {
    name: 'a reader who leaves takes nothing from the others who wait for the same, not even the one who came first',
    async run(stage) {
      const token = secret();
      const held = barrier();
      stage.upstream.on(by(token), reply(hold(held), json(200, SUBSCRIPTION)));
      const owner = await ask(stage, { token });
      await held.reached;
      const others = [await ask(stage, { token }), await ask(stage, { token })];
      await settled(stage, token);
      stage.leave(owner);
      await heard(stage);
      held.release();
      for (const other of others) {
        const { status, headers, body } = await other.readResponse();
        expect([status, headers['cache-status'], JSON.parse(body)]).toEqual([
          200,
          'portico; fwd=miss; stored; collapsed',
          SUBSCRIPTION,
        ]);
        other.destroy();
      }
      expect(stage.upstream.callsTo(by(token))).toHaveLength(1);
    },
  },
  {
    name: 'when the client of an overview leaves, every upstream call of it is ended',
    async run(stage) {
      const token = secret();
      stage.upstream.on(by(token), hang());
      const client = await ask(stage, { token, path: '/bff/v1/account-overview' });
      const calls = await stage.upstream.waitForCalls(4, by(token));
      stage.leave(client);
      await Promise.all(calls.map((sent) => stage.upstream.disconnected(sent)));
      await settled(stage);
      expect(stage.upstream.callsTo(by(token))).toHaveLength(4);
    },
  },
  {
    name: 'a write goes on to its end when its client has left',
    async run(stage) {
      const token = secret();
      const id = `write-of-one-who-left-${stage.upstream.calls.length}`;
      const path = '/api/v2/apikey/';
      const held = barrier();
      stage.upstream.on(
        by(token),
        reply(hold(held), json(201, { id: 1, key: secret(), label: '', created_at: NOON, updated_at: NOON })),
      );
      const client = await ask(stage, { token, path, body: { label: '' }, headers: { 'x-request-id': id } });
      const [sent] = await stage.upstream.waitForCalls(1, by(token));
      let isCut = false;
      void stage.upstream.disconnected(sent!).then(() => (isCut = true));
      stage.leave(client);
      await heard(stage);
      expect(isCut).toBe(false);
      held.release();
      // It has read the answer, which nobody waits for, and says so in the log.
      const lineOfIt = () => stage.gateway.records().find((record) => record['request_id'] === id);
      expect(await stage.gateway.until(lineOfIt)).toMatchObject({ route: path, status: 201, upstream_calls: 1 });
      expect(stage.upstream.callsTo(by(token))).toHaveLength(1);
    },
  },
];
