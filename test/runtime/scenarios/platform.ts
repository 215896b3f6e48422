import { expect } from 'vitest';
import { rawRequest, type RawResponse } from '../../support/raw-client.ts';
import { type Scenario, type Stage, visit } from '../stage.ts';

type Platform = 'Node' | 'workerd';

/** What holds on one runtime only, and why the other is different. docs/deploying.md has the list for users. */
interface PlatformScenario extends Scenario {
  readonly on: Platform;
  readonly because: string;
}

const PATH = '/api/v2/subscription/';

/** One request as these lines, with a good credential. */
async function send(stage: Stage, ...lines: readonly string[]): Promise<RawResponse> {
  const { token } = await visit(stage, 'paid');
  const head = [...lines, `Authorization: Token ${token}`].join('\r\n');
  return rawRequest(Number(new URL(stage.gateway).port), `${head}\r\n\r\n`);
}

const expectProblem = ({ status, headers, body }: RawResponse, expected: number, code: string) =>
  expect([status, headers['content-type'], JSON.parse(body)]).toMatchObject([
    expected,
    'application/problem+json',
    { status: expected, code },
  ]);

/** An answer of the platform's front, which no line of ours has seen. */
const expectPlatforms = ({ status, headers, body }: RawResponse, expected: number) => {
  expect([status, headers['x-request-id']]).toEqual([expected, undefined]);
  expect(body).not.toMatch(/^\{/);
};

const HEADS = 'the platform reads heads and answers bad ones itself';
const URLS = 'the platform makes a URL of a path before the worker sees it, Node hands it over as it came';
const METHODS = 'the platform knows the methods that it passes on';

const BAD_HOSTS = [
  { what: 'no Host', hosts: [] },
  { what: 'two Hosts', hosts: ['Host: a', 'Host: b'] },
  { what: 'a malformed Host', hosts: ['Host: a b'] },
] as const;

export const platformScenarios: readonly PlatformScenario[] = [
  {
    name: 'a path with dot segments is no endpoint',
    on: 'Node',
    because: URLS,
    async run(stage) {
      expectProblem(await send(stage, `GET /api/v2/x/..${PATH.slice(7)} HTTP/1.1`, 'Host: a'), 404, 'unknown_endpoint');
    },
  },
  {
    name: 'a path with dot segments is the path that they lead to',
    on: 'workerd',
    because: URLS,
    async run(stage) {
      const { status, body } = await send(stage, `GET /api/v2/x/..${PATH.slice(7)} HTTP/1.1`, 'Host: a');
      expect([status, JSON.parse(body)]).toMatchObject([200, { id: 1005 }]);
    },
  },
  ...BAD_HOSTS.map(({ what, hosts }): PlatformScenario => ({
    name: `${what} is a problem of ours`,
    on: 'Node',
    because: HEADS,
    async run(stage) {
      expectProblem(await send(stage, `GET ${PATH} HTTP/1.1`, ...hosts), 400, 'bad_request');
    },
  })),
  {
    name: 'no Host is refused by the platform',
    on: 'workerd',
    because: HEADS,
    async run(stage) {
      expectPlatforms(await send(stage, `GET ${PATH} HTTP/1.1`), 400);
    },
  },
  {
    name: 'a method that nobody knows is not parsed',
    on: 'Node',
    because: METHODS,
    async run(stage) {
      expectPlatforms(await send(stage, `FROB ${PATH} HTTP/1.1`, 'Host: a'), 400);
    },
  },
  {
    name: 'a method that we do not know is a problem of ours',
    on: 'Node',
    because: METHODS,
    async run(stage) {
      expectProblem(await send(stage, 'PROPFIND /nothing HTTP/1.1', 'Host: a'), 501, 'method_not_implemented');
    },
  },
  {
    name: 'a method that nobody knows is refused by the platform',
    on: 'workerd',
    because: METHODS,
    async run(stage) {
      expectPlatforms(await send(stage, `FROB ${PATH} HTTP/1.1`, 'Host: a'), 501);
    },
  },
  {
    name: 'a head of 20 KB is too large',
    on: 'Node',
    because: 'the platform has bounds of its own, which are wider',
    async run(stage) {
      const answer = await send(stage, `GET ${PATH} HTTP/1.1`, 'Host: a', `X-Long: ${'x'.repeat(20_000)}`);
      expectProblem(answer, 431, 'request_header_fields_too_large');
    },
  },
];
