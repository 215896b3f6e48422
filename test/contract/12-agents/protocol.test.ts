import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { type Answer, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer, refused } from '../../support/upstream.ts';
import { callTool, connect, env, post, rpc, type ToolResult } from './agent.ts';

const READ = 'getSubscription';
const gateway = openGateway(env);

/** Of the revision of 2026, which says in each message what others say once. */
const meta = (name: string) => `io.modelcontextprotocol/${name}`;

const expect401 = ({ status, code, headers }: Answer) =>
  expect([status, code, headers.get('www-authenticate')]).toEqual([401, 'unauthenticated', 'Bearer']);

everywhere(
  says('streamable HTTP, stateless: POST only, GET and DELETE are 405'),
  async (stage) => {
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const { status, code, headers } = await stage.call('/mcp', { method, headers: { accept: 'text/event-stream' } });
      expect([method, status, code, headers.get('allow')]).toEqual([method, 405, 'method_not_allowed', 'POST']);
    }
    // Nothing is remembered: a tool is called by who never said hello.
    const { status, headers, json } = await callTool(stage, READ);
    expect([status, headers.get('content-type'), json.id]).toEqual([200, 'application/json', 1]);
    expect([headers.get('cache-control'), headers.get('mcp-session-id')]).toEqual(['no-store', null]);
  },
  { env },
);

describe(says('`/mcp` speaks the Model Context Protocol'), () => {
  everywhere(
    'as its first revisions and that of 2026 do',
    async (stage) => {
      for (const revision of [undefined, '2026-07-28']) {
        const client = await connect(stage, revision);
        expect((await client.listTools()).tools.length).toBeGreaterThan(20);
        const { content } = (await client.callTool({ name: READ, arguments: {} })) as ToolResult;
        expect(JSON.parse(content[0]?.text ?? '')).toHaveProperty('plan');
      }
    },
    { env },
  );

  test('to listen for changes is refused, since it would never end', async () => {
    const named = { [meta('protocolVersion')]: '2026-07-28', [meta('clientInfo')]: { name: 'a', version: '1' } };
    const params = { notifications: {}, _meta: { ...named, [meta('clientCapabilities')]: {} } };
    const method = 'subscriptions/listen';
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method };
    const got = await rpc(gateway, method, params, { headers });
    expect([got.headers.get('content-type'), got.json.error.code]).toEqual(['application/json', -32_603]);
  });
});

everywhere(
  says('errors of the protocol itself are JSON-RPC'),
  async (stage) => {
    expect((await rpc(stage, 'ping')).json).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
    expect((await rpc(stage, 'no/such')).json.error.code).toBe(-32_601);
    expect((await callTool(stage, 'noSuch')).json.error.code).toBe(-32_602);
    expect((await rpc(stage, 'tools/call', { name: 7 })).json.error.code).toBe(-32_602);
    const note = await post(stage, { jsonrpc: '2.0', method: 'notifications/initialized' });
    expect([note.status, note.text]).toEqual([202, '']);
    const other = await rpc(stage, 'ping', {}, { headers: { 'mcp-protocol-version': '1999-01-01' } });
    expect([other.status, other.json.error.message]).toEqual([400, expect.stringContaining('protocol version')]);
    expect((await rpc(stage, 'ping', {}, { headers: { accept: 'text/html' } })).status).toBe(406);
  },
  { env },
);

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };

test.each([
  ['no JSON', '{', -32_700],
  ['nothing', '', -32_700],
  ['a thousand brackets', `${'['.repeat(1000)}${']'.repeat(1000)}`, -32_700],
  ['several messages', JSON.stringify([ping, ping]), -32_600],
  ['no message', '{"a":1}', -32_600],
  ['no message at all', '7', -32_600],
])(`${says('errors of the protocol itself are JSON-RPC')}: %s`, async (_, body, code) => {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const got = await gateway.call('/mcp', { method: 'POST', body, headers });
  expect([got.status, got.json]).toMatchObject([400, { jsonrpc: '2.0', id: null, error: { code } }]);
});

test(`${says('`/mcp` speaks the Model Context Protocol')}: a body that is too large, or no JSON by its type`, async () => {
  const long = await rpc(gateway, 'ping', { text: 'x'.repeat(70_000) });
  expect([long.status, long.code]).toEqual([413, 'payload_too_large']);
  const other = await rpc(gateway, 'ping', {}, { headers: { 'content-type': 'text/plain' } });
  expect([other.status, other.code]).toEqual([415, 'unsupported_media_type']);
});

test(`${says('`MCP` | `false`')}: without it there is no such path`, async () => {
  const { call } = openGateway();
  expect(await rpc({ call }, 'ping')).toMatchObject({ status: 404, code: 'unknown_endpoint' });
});

everywhere(
  says('A problem is a tool error with its code and `retry_after`'),
  async (stage) => {
    stage.upstream.next(READ, answer(429, { detail: 'Slow down.' }, { 'retry-after': '7' }));
    const client = await connect(stage);
    const limited = (await client.callTool({ name: READ, arguments: {} })) as ToolResult;
    expect(limited).toMatchObject({ isError: true, structuredContent: { code: 'rate_limited', retry_after: 7 } });
    expect(JSON.parse(limited.content[0]!.text)).toEqual(limited.structuredContent);
  },
  { env },
);

test(`${says('A problem is a tool error with its code and `retry_after`')}: the upstream is down, refuses, or has none`, async () => {
  const { upstream } = gateway;
  const codeOf = async (name: string, input: object) => {
    const { isError, structuredContent } = (await callTool(gateway, name, input)).json.result as ToolResult;
    return [isError, structuredContent['code'], structuredContent['status']];
  };
  upstream.next('listEarnOuts', refused(), refused(), refused());
  expect(await codeOf('listEarnOuts', {})).toEqual([true, 'upstream_unreachable', 502]);
  upstream.next('getTransaction', answer(404, { detail: 'Not found.' }));
  expect(await codeOf('getTransaction', { id: 404 })).toEqual([true, 'not_found', 404]);
  upstream.next('listTransactions', answer(403, { detail: 'No.', code: '2fa_needed' }));
  expect(await codeOf('listTransactions', {})).toEqual([true, '2fa_needed', 403]);
});

describe(says('No usable credential: 401 with `WWW-Authenticate: Bearer`.'), () => {
  everywhere(
    'missing, malformed, or refused by the upstream',
    async (stage) => {
      for (const asking of [{ token: null }, { token: null, headers: { authorization: 'Basic eDp5' } }]) {
        for (const method of ['initialize', 'tools/list', 'ping']) expect401(await rpc(stage, method, {}, asking));
        expect401(await callTool(stage, READ, {}, asking));
        expect401(await post(stage, '{', asking));
      }
      expect(stage.upstream.calls).toEqual([]);
      const token = secret();
      stage.upstream.next(READ, answer(401, { detail: 'Invalid token.' }));
      expect401(await callTool(stage, READ, {}, { token }));
    },
    { env },
  );

  test('of a browser whose session is none, and nowhere else', async () => {
    const { call } = openGateway({ ...env, SESSIONS: 'true', SECRETS: secret('of-these-sessions-and-no-others') });
    const headers = { cookie: '__Host-Http-portico=x', 'sec-fetch-site': 'same-origin' };
    const none = await rpc({ call }, 'ping', {}, { token: null, headers });
    expect([none.status, none.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    const read = await call('/api/v2/subscription/', { token: null, headers });
    expect([read.status, read.headers.get('www-authenticate')]).toEqual([401, 'Token']);
  });
});
