import { onTestFinished } from 'vitest';
import type { ServeOptions } from '../../src/entry/node/server/serve.ts';
import type { OperationId } from './account-api.ts';
import type { Call } from './calls.ts';
import { exampleRequest } from './examples.ts';
import { type Env, startGateway, type TestGateway } from './gateway.ts';
import { call, type CallOptions, type TextAnswer } from './http.ts';
import { goodAnswer } from './marked.ts';
import { rawRequest, type RawResponse } from './raw-client.ts';
import { perCall, type ScriptedUpstream, startUpstream } from './scripted-upstream.ts';
import { secret } from './secrets.ts';
import { testClock } from './clock.ts';

/** A gateway in this process, on real sockets, before an upstream that does byte for byte what the test says. */
export interface World {
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
  readonly advance: (seconds: number) => void;
  /** The operation's example request. Unless another is named one account asks. */
  readonly ask: (id: OperationId, options?: Partial<CallOptions>) => Promise<TextAnswer>;
  /** A request with no more in it than is said. */
  readonly call: (options: CallOptions) => Promise<TextAnswer>;
  /** One request on a connection of its own, byte for byte. */
  readonly raw: (request: string | Uint8Array) => Promise<RawResponse>;
  /** From now on every call gets a good answer, marked with what `mark` says then, unless a script that is added later has one. */
  readonly answerAll: (mark?: (call: Call) => number | string) => void;
}

interface WorldOptions {
  /** Path of the upstream's base URL. */
  readonly base?: string;
  /** Of the listener, in milliseconds. */
  readonly limits?: ServeOptions['limits'];
  readonly atEnd?: (close: () => Promise<void>) => void;
}

/** At the end of the test an upstream call that nobody expected fails it. */
export async function openWorld(
  env: Env = {},
  { base = '', limits, atEnd = onTestFinished }: WorldOptions = {},
): Promise<World> {
  const clock = testClock();
  const upstream = await startUpstream();
  const gateway = await startGateway(upstream.url + base, { env, clock, limits });
  atEnd(async () => {
    await gateway.close();
    await upstream.close();
    upstream.assertNoUnexpected();
  });
  const token = secret();
  return {
    upstream,
    gateway,
    advance: (seconds) => clock.advance(seconds * 1000),
    ask: (id, asking = {}) => call(gateway.url, { ...exampleRequest(id), token, ...asking }),
    call: (request) => call(gateway.url, request),
    raw: (request) => rawRequest(gateway.port, request),
    answerAll: (mark = () => 1) =>
      void upstream.on(
        () => true,
        perCall((to) => goodAnswer(to, mark(to))),
      ),
  };
}
