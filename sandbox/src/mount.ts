import type { Context, Hono } from 'hono';
import { ID_FORMS } from '../../src/upstream/operation.ts';
import { type OperationId, allOperations } from './operations.ts';
import { authenticate, credentialOf } from './authenticate.ts';
import { readBody } from './body.ts';
import type { Answer, OpenCall } from './call.ts';
import type { Calls } from './calls.ts';
import type { Clock } from './clock.ts';
import { methodNotAllowed, Refusal } from './errors.ts';
import { faultyResponse, type Fault, type Faults } from './faults.ts';
import { handlers, isOpen, openHandlers } from './handlers/index.ts';
import { applyTransitions } from './transitions/index.ts';
import { page, refuse, send } from './respond.ts';
import type { World } from './state.ts';

export interface Parts {
  readonly calls: Calls;
  readonly faults: Faults;
  readonly clock: Clock;
  readonly world: () => World;
  readonly sleep: (ms: number) => Promise<void>;
  readonly cutConnection: ((env: unknown) => void) | undefined;
}

type Operation = (typeof allOperations)[number];

/** Mounts every operation. Paths need their trailing slash: without it the upstream answers 404. */
export function mountOperations(app: Hono, parts: Parts): void {
  for (const operation of allOperations) {
    app.on(operation.method, routeOf(operation), (c) => serve(c, operation.id, parts));
  }
  for (const path of new Set(allOperations.map(routeOf))) {
    app.all(path, (c) => recorded(c, parts, () => refuse(methodNotAllowed(c.req.method, methodsOf(path)))));
  }
  app.notFound((c) => recorded(c, parts, () => page(404, 'Not Found')));
}

const routeOf = ({ idForm, path }: Operation) => path.replace('{id}', `:id{${ID_FORMS[idForm ?? 'digits']}}`);

const methodsOf = (path: string) =>
  allOperations.filter((operation) => routeOf(operation) === path).map(({ method }) => method);

function recorded(c: Context, { calls }: Parts, respond: () => Response): Response {
  const call = calls.begin(c.req.raw, null);
  const response = respond();
  call.status = response.status;
  return response;
}

async function serve(c: Context, operation: OperationId, parts: Parts): Promise<Response> {
  const call = parts.calls.begin(c.req.raw, operation);
  call.account = credentialOf(parts.world(), c.req.raw)?.account.name ?? null;
  const fault = parts.faults.take(operation);
  const work = () => answer(c, operation, parts);
  const response = fault ? await withFault(fault, work, c, parts) : await work();
  call.status = fault?.reset ? null : response.status;
  return response;
}

async function withFault(fault: Fault, work: () => Promise<Response>, c: Context, parts: Parts): Promise<Response> {
  const done = fault.afterWork ? await work() : null;
  if (fault.delayMs > 0) await parts.sleep(fault.delayMs);
  if (fault.reset) return cut(c, parts);
  const faulty = faultyResponse(fault);
  if (faulty) return faulty;
  const response = done ?? (await work());
  for (const [name, value] of Object.entries(fault.headers)) response.headers.set(name, value);
  return response;
}

/** Where the runtime has no connection to cut, the body breaks off instead. */
function cut(c: Context, { cutConnection }: Parts): Response {
  if (cutConnection) {
    cutConnection(c.env);
    return new Response(null);
  }
  const broken = new ReadableStream({ start: (controller) => controller.error(new Error('connection cut')) });
  return new Response(broken, { headers: { 'Content-Type': 'application/json' } });
}

async function answer(c: Context, operation: OperationId, parts: Parts): Promise<Response> {
  try {
    return send(operation, await handle(c, operation, parts));
  } catch (error) {
    if (error instanceof Refusal) return refuse(error);
    throw error;
  }
}

async function handle(c: Context, operation: OperationId, parts: Parts): Promise<Answer> {
  if (isOpen(operation)) return openHandlers[operation](await openCall(c, parts));
  const credential = authenticate(parts.world(), c.req.raw);
  const call = await openCall(c, parts);
  applyTransitions(credential.account, call.world, call.now);
  return handlers[operation]({ ...call, account: credential.account, credential });
}

async function openCall(c: Context, { clock, world }: Parts): Promise<OpenCall> {
  const url = new URL(c.req.url);
  const body = await readBody(c.req.raw);
  return { world: world(), now: clock.now(), id: c.req.param('id') ?? '', url, query: url.searchParams, body };
}
