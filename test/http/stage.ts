import { afterEach, beforeEach } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { rawRequest, type RawResponse } from '../support/raw-client.ts';
import { startUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';

interface StageOptions {
  /** Variables of the gateway. */
  readonly env?: Readonly<Record<string, string>>;
  /** Path of the upstream's base URL. */
  readonly base?: string;
}

/** A gateway in front of a scripted upstream, both new for each test. */
export interface Stage {
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
  call(options: CallOptions): Promise<TextAnswer>;
  /** One request on a connection of its own, byte for byte. */
  raw(request: string | Uint8Array): Promise<RawResponse>;
}

/** Sets the stage anew for each test of the file or block. A call that nothing was scripted for fails the test. */
export function useStage({ env = {}, base = '' }: StageOptions = {}): Stage {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  beforeEach(async () => {
    upstream = await startUpstream();
    gateway = await startGateway(upstream.url + base, { env });
  });
  afterEach(async () => {
    await gateway.close();
    await upstream.close();
    upstream.assertNoUnexpected();
  });
  return {
    get upstream() {
      return upstream;
    },
    get gateway() {
      return gateway;
    },
    call: (options) => call(gateway.url, options),
    raw: (request) => rawRequest(gateway.port, request),
  };
}

interface RawRequest {
  readonly method?: string;
  readonly target: string;
  /** `Host` is put before them where none of them is one. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: string;
}

/** A request as text, with nothing put right; `Content-Length` comes with a body. */
export function requestText({ method = 'GET', target, headers = [], body }: RawRequest): string {
  const given = new Set(headers.map(([name]) => name.toLowerCase()));
  const all = [
    ...(given.has('host') ? [] : [['Host', 'gateway.example']]),
    ...headers,
    ...(body === undefined ? [] : [['Content-Length', String(Buffer.byteLength(body))]]),
  ];
  const lines = all.map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`;
}
