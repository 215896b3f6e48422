import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Answer, Asked, Asking } from '../../support/gateway.ts';

export const LISTED = 'https://app.example';

/** One for all, so that a run has one workerd for them. */
export const env = { MCP: 'true', ALLOWED_ORIGINS: LISTED };

const ACCEPT = 'application/json, text/event-stream';

/** A message as it is on the wire, and the HTTP answer to it. */
export const post = ({ call }: Pick<Asked, 'call'>, message: unknown, { headers, ...asking }: Asking = {}) =>
  call('/mcp', { body: message, headers: { accept: ACCEPT, ...headers }, ...asking });

export const rpc = (asked: Pick<Asked, 'call'>, method: string, params: object = {}, asking?: Asking) =>
  post(asked, { jsonrpc: '2.0', id: 1, method, params }, asking);

/** The result of a tool, as it is on the wire. */
export const callTool = (asked: Pick<Asked, 'call'>, name: string, input: unknown = {}, asking?: Asking) =>
  rpc(asked, 'tools/call', { name, arguments: input }, asking);

/** The structured content, digit for digit; undefined where there is none. */
export const contentOf = ({ text }: Answer): string | undefined =>
  /"structuredContent":(.*?)(?:,"isError":true)?\},"jsonrpc"/s.exec(text)?.[1];

export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
}

/** The official client, by the requests of a test. `revision`: the one of the protocol that it insists on. */
export async function connect({ call, me }: Pick<Asked, 'call' | 'me'>, revision?: string) {
  const fetch = async (_: unknown, { method = 'GET', headers, body }: RequestInit = {}) => {
    const asking = { method, token: null, headers: Object.fromEntries(new Headers(headers)) };
    const got = await call('/mcp', { ...asking, ...(typeof body === 'string' && { body }) });
    return new Response(got.status === 202 ? null : got.text, { status: got.status, headers: got.headers });
  };
  const requestInit = { headers: { authorization: `Bearer ${me}` } };
  const options = revision === undefined ? {} : { versionNegotiation: { mode: { pin: revision } } };
  const client = new Client({ name: 'a test', version: '1' }, options);
  await client.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch, requestInit }));
  return client;
}
