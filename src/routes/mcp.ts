import { GatewayError } from '../core/errors.ts';
import { originOf } from '../core/http-url.ts';
import { extentOf, isPlainObject, MAX_DEPTH } from '../core/json.ts';
import type { RouteFacts } from '../core/request.ts';
import { VERSION } from '../core/version.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { parametersOf, rowsReadBy } from '../gateway/overview.ts';
import { choicesOf } from '../gateway/plan.ts';
import { CLIENT_LEFT, endRequest } from '../http/access-log.ts';
import { jsonTextOf } from '../http/body.ts';
import { type Answer, answerTo, NO_STORE } from '../http/reply.ts';
import { HonoRequest, routeParam } from '../http/request.ts';
import { checkOrigin } from '../http/session.ts';
import { invalid, isExploded, MAX_VALUES } from '../upstream/input.ts';
import { formOf } from '../upstream/path.ts';
import { openApiText } from './document.ts';
import type { Serve } from './mcp-server.ts';
import type { Route } from './route.ts';

/** A route that agents call by its operation's name. */
interface Tool {
  readonly route: Route;
  /** The path's parameters, and what the value of each matches. */
  readonly parameters: readonly { readonly name: string; readonly forms: readonly RegExp[] }[];
  /** Its query parameters; true for a list that is one parameter for each item. */
  readonly query: ReadonlyMap<string, boolean>;
}

/** The tool of a route; undefined where the route is no read, or reads a secret. */
function toolOf(route: Route, { table, overviews }: Gateway['deps']): Tool | undefined {
  const row = table.operations.find(({ id }) => id === route.operation);
  const overview = overviews.find(({ id }) => id === route.operation);
  const reads = row ? [row] : overview ? rowsReadBy(overview) : [];
  if (reads.some(({ method, secrets }) => method !== 'GET' || secrets)) return undefined;
  const ofPath = overview
    ? parametersOf(overview)
    : Object.entries(row?.params ?? {}).map(([name, form]) => ({ name, forms: [form] }));
  const parameters = ofPath.map(({ name, forms }) => ({ name, forms: forms.map(formOf) }));
  const ofRow = Object.entries(row?.query ?? {}).map(([name, schema]) => [name, isExploded(schema)] as const);
  if (!overview) return { route, parameters, query: new Map(ofRow) };
  const { names, sized } = choicesOf(overview);
  return { route, parameters, query: new Map([...names.keys(), ...sized.keys()].map((name) => [name, false])) };
}

/** `/mcp`, where `MCP` is on (`contract.md` section 12). `routes`: what tools stand for. */
export function mcpRoute(gateway: Gateway, routes: readonly Route[]): Route {
  const tools = new Map<string, Tool>();
  for (const route of routes) {
    const tool = toolOf(route, gateway.deps);
    if (tool) tools.set(route.operation ?? '', tool);
  }
  let serve: Serve | undefined;
  return {
    method: 'POST',
    path: '/mcp',
    name: '/mcp',
    operation: 'mcp',
    takesCredential: true,
    challenge: 'Bearer',
    mayBeCompressed: true,
    async handle(request) {
      if (request.header('origin') !== undefined) checkOrigin(request);
      void request.credential; // without one nothing is answered
      const text = (await jsonTextOf(request)) ?? '';
      const message = messageIn(text);
      const tool = toolIn(message, tools);
      if (!tool) await gateway.admit(request); // the call of a tool counts as what it stands for
      if (message === undefined) return refusal(-32_700, 'The body is no JSON, or too much of it');
      if (Array.isArray(message) || !request.hono) return refusal(-32_600, 'One message at a time');
      // What speaks the protocol is loaded only now.
      serve ??= (await import('./mcp-server.ts')).serveBy(await openApiText(gateway.deps), [...tools.keys()], VERSION);
      let called: Answer | undefined;
      const response = await serve(request.hono.req.raw, message, async () => {
        called = await answerOf(gateway, request, tool, argumentsIn(text));
        return { text: jsonOf(called), isError: called.status >= 400 };
      });
      if (tool && !called) await gateway.admit(request); // the protocol refused the call, so the tool did not count it
      if (called?.status === 401 || called?.status === CLIENT_LEFT) return called;
      return withContent(response, called);
    },
  };
}

/** The message of a body; undefined if it is no JSON, or deeper or longer than other bodies may be. */
function messageIn(text: string): unknown {
  try {
    const { depth, values } = extentOf(text);
    return depth > MAX_DEPTH || values > MAX_VALUES ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}

/** The tool that a message calls; undefined for any other message. */
function toolIn(message: unknown, tools: ReadonlyMap<string, Tool>): Tool | undefined {
  const { method, params } = isPlainObject(message) ? message : {};
  return method === 'tools/call' && isPlainObject(params) ? tools.get(String(params['name'])) : undefined;
}

/** What a tool is called with. Numbers are the texts that were sent; `2.0` is the integer `2` (JSON Schema). */
const argumentsIn = (text: string) =>
  (JSON.parse(text, asWritten) as { params?: { arguments?: unknown } }).params?.arguments;

const asWritten = (_: string, value: unknown, { source }: { readonly source?: string } = {}) =>
  typeof value === 'number' ? source?.replace(/^(-?\d+)\.0+$/, '$1') : value;

const JSON_TYPE = { ...NO_STORE, 'Content-Type': 'application/json' };

/** An error of the protocol. It has no batches any more. */
const refusal = (code: number, message: string): Answer => ({
  status: 400,
  headers: JSON_TYPE,
  body: JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }),
});

const NO_CONTENT = '"structuredContent":{}';

/**
 * The answer of the protocol, with the JSON of the tool's answer put in as it is: what parses and prints it would change numbers.
 * The place is found by words that texts in JSON cannot have, since their quotes are escaped.
 */
async function withContent(response: Response, called: Answer | undefined): Promise<Answer> {
  const { status } = response;
  const text = await response.text();
  if (text === '') return { status, headers: NO_STORE, body: null };
  const body = called ? text.replace(NO_CONTENT, () => `"structuredContent":${objectIn(jsonOf(called))}`) : text;
  return { status, headers: JSON_TYPE, body };
}

/** No read is answered by bytes or a stream. */
const jsonOf = ({ body }: Answer) => (typeof body === 'string' ? body : 'null');

/** Structured content is an object: anything else is its `result`. */
const objectIn = (json: string) => (/^\s*\{/.test(json) ? json : `{"result":${json}}`);

/** Calls a tool, and logs the call as the request that it stands for. */
async function answerOf(gateway: Gateway, outer: HonoRequest, tool: Tool | undefined, input: unknown): Promise<Answer> {
  if (!tool) throw GatewayError.of('unknown_endpoint');
  const { route } = tool;
  const { error, ...given } = argumentsOf(tool, input);
  const request = new ToolRequest(outer, { ...route, via: 'mcp', challenge: 'Bearer' }, given);
  outer.isEnvelope = true;
  const answer = await answered(request, async () => {
    if (!error) return route.handle(request);
    await gateway.admit(request); // it counts, and needs a session that lives
    throw error;
  });
  outer.limitUse = request.limitUse;
  endRequest(request, answer.status);
  return answer;
}

async function answered(request: HonoRequest, handle: () => Answer | Promise<Answer>): Promise<Answer> {
  try {
    return await handle();
  } catch (error) {
    return answerTo(error, request);
  }
}

interface Arguments {
  /** Of the path's parameters, by the names that they have in the router. */
  readonly params: ReadonlyMap<string, string>;
  readonly query: string;
  readonly error?: GatewayError | undefined;
}

/** The arguments of a call, as the path and the query have them. */
function argumentsOf({ parameters, query }: Tool, input: unknown): Arguments {
  const all = new Map(isPlainObject(input) ? Object.entries(input).flatMap(pairsOf) : []);
  const idOf = ({ name }: { readonly name: string }) => all.get(name)?.join() ?? '';
  const params = new Map(parameters.map((one) => [routeParam(one.name), idOf(one)]));
  const bad = parameters
    .filter((one) => !one.forms.every((form) => form.test(idOf(one))))
    .map(({ name }) => ({ field: name, message: all.has(name) ? 'expected an id' : 'is missing' }));
  for (const { name } of parameters) all.delete(name);
  const unknown = [...all.keys()].filter((name) => !query.has(name));
  const errors = [
    ...unknown.map((field) => ({ code: 'unknown_name', message: 'is no argument here', field })),
    ...bad.map((one) => ({ code: 'invalid_format', ...one })),
  ];
  const pairs = [...all].flatMap(([name, texts]) =>
    (query.get(name) ? texts : [texts.join()]).map((one) => [name, one]),
  );
  return {
    params,
    query: new URLSearchParams(pairs).toString(),
    error: errors.length > 0 ? invalid(errors) : undefined,
  };
}

/** No parameter has a longer name. Each value in an object of a long name would have that name again. */
const MAX_NAME = 64;

/** `a` of `fields` is `fields[a]`. What is null is left out. */
function pairsOf([name, value]: [string, unknown]): [string, string[]][] {
  if (value === null) return [];
  if (isPlainObject(value) && name.length <= MAX_NAME && Object.keys(value).length > 0)
    return Object.entries(value).flatMap(([key, one]) => pairsOf([`${name}[${key}]`, one]));
  return [[name, (Array.isArray(value) ? value : [value]).map(textOf)]];
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** The GET that the call of a tool stands for. It comes from the same client, with the same headers. */
class ToolRequest extends HonoRequest {
  readonly #params: Arguments['params'];

  constructor(outer: HonoRequest, route: RouteFacts, { params, query }: Arguments) {
    const inPath = (_: string, name: string) => encodeURIComponent((params.get(routeParam(name)) ?? '').toWellFormed());
    const path = outer.mounted + route.name.replaceAll(/\{(\w+)\}/g, inPath);
    const url = `${originOf(outer.head.url)}${path}${query && `?${query}`}`;
    const own: Record<string, string | undefined> = {
      ...NOT_OF_A_CALL,
      'x-request-id': outer.requestId,
      ...(outer.span && { traceparent: outer.span.traceparent }),
    };
    const header = (name: string) => (Object.hasOwn(own, name) ? own[name] : outer.header(name));
    super({ method: 'GET', url, header }, route, outer.tools, outer.hono);
    this.session = outer.session;
    this.#params = params;
  }

  override param(name: string): string {
    return this.#params.get(name) ?? '';
  }
}

/** Headers that say how the answer to the POST should be. */
const NOT_OF_A_CALL = { accept: undefined, 'if-none-match': undefined, prefer: undefined };
