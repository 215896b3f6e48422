import type { ServeOptions } from '../../src/entry/node/server/serve.ts';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import type { Env, LogLine } from '../support/gateway.ts';
import { openSocket, type RawResponse, type RawSocket } from '../support/raw-client.ts';
import { secret } from '../support/secrets.ts';
import { openWorld, type World } from '../support/world.ts';

export const PATH = '/api/v2/subscription/';
export const HOST = 'Host: gateway.example\r\n';
export const JSON_TYPE = 'Content-Type: application/json\r\n';
export const authorization = (): string => `Authorization: Token ${secret()}\r\n`;

/** A head with these lines in it, and a body behind it. */
export const head = (startLine: string, lines: string, body = ''): string =>
  `${startLine} HTTP/1.1\r\n${lines}${authorization()}\r\n${body}`;
export const get = (lines: string): string => head(`GET ${PATH}`, lines);
export const post = (lines: string, body = ''): string => head('POST /api/v2/apikey/', HOST + JSON_TYPE + lines, body);

/** A gateway for all tests of the file, on sockets; each has the calls and lines of its own. */
export function useGateway(env: Env = {}, options: { readonly limits?: ServeOptions['limits'] } = {}) {
  let world: World;
  let end: (() => Promise<void>) | undefined;
  const sockets: RawSocket[] = [];
  beforeAll(async () => {
    world = await openWorld(env, { ...options, atEnd: (close) => void (end = close) });
  });
  beforeEach(() => {
    world.upstream.calls.length = 0;
    (world.gateway.lines as LogLine[]).length = 0;
    world.answerAll();
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await end?.();
  });
  return {
    get upstream() {
      return world.upstream;
    },
    get gateway() {
      return world.gateway;
    },
    raw: (request: string) => world.raw(request),
    call: (...given: Parameters<World['call']>) => world.call(...given),
    advance: (seconds: number) => world.advance(seconds),
    async open() {
      const socket = await openSocket(world.gateway.port);
      sockets.push(socket);
      return socket;
    },
    /** Resolves with the lines of the log once there are so many. */
    linesOf: (many: number) => grownTo(world.gateway.lines as LogLine[], many),
    /** So that nobody is the worse for it. */
    expectServing: async () => expect((await world.raw(get(HOST))).status).toBe(200),
  };
}

/** One request after the other on one connection: nothing of a body is taken for a request. */
export async function oneAfterOther(
  socket: RawSocket,
  ...requests: readonly string[]
): Promise<readonly RawResponse[]> {
  const answers: RawResponse[] = [];
  for (const text of requests) {
    await socket.write(text);
    answers.push(await socket.readResponse({ head: text.startsWith('HEAD') }));
  }
  return answers;
}

const grownTo = (lines: LogLine[], many: number): Promise<readonly LogLine[]> =>
  new Promise((resolve) => {
    const look = () => lines.length >= many && resolve(lines);
    lines.push = (...added) => {
      const length = Array.prototype.push.apply(lines, added);
      look();
      return length;
    };
    look();
  });
