import type { Context, Hono } from 'hono';
import type { Operation } from '../../src/upstream/operation.ts';
import { sourceOf } from '../../src/upstream/path.ts';
import { authenticate, credentialOf } from './authenticate.ts';
import type { Answer, Call } from './call.ts';
import type { Calls } from './calls.ts';
import { Refusal } from './errors.ts';
import { faultyResponse, type Fault, type Faults } from './faults.ts';
import { handlers } from './handlers/index.ts';
import { checkQuery, readBody } from './input.ts';
import { type OperationId, allOperations, operations } from './operations.ts';
import { pageNotFound, refuse, send } from './respond.ts';
import type { World } from './state.ts';
import type { Instant } from './time.ts';
import { applyTransitions } from './transitions.ts';

export interface Parts {
  readonly calls: Calls;
  readonly faults: Faults;
  readonly world: () => World;
  readonly now: () => Instant;
  readonly sleep: (ms: number) => Promise<void>;
  readonly cutConnection: ((env: unknown) => void) | undefined;
}

/** Mounts every operation. Paths need their trailing slash: without it the upstream answers 404. */
export function mountOperations(app: Hono, parts: Parts): void {
  for (const operation of allOperations) {
    app.on(operation.method, routeOf(operation), (c) => serve(c, operation.id, parts));
  }
  for (const path of new Set(allOperations.map(routeOf))) {
    app.all(path, (c) => recorded(c, parts, () => refuse(methodNotAllowed(c.req.method, path))));
  }
  app.notFound((c) => recorded(c, parts, pageNotFound));
}

const routeOf = ({ params, path }: Operation) => path.replace('{id}', `:id{${sourceOf(params['id'] ?? 'digits')}}`);

function methodNotAllowed(method: string, path: string): Refusal {
  const allowed = allOperations.filter((operation) => routeOf(operation) === path).map((operation) => operation.method);
  return new Refusal(405, { detail: `Method "${method}" not allowed.` }, { Allow: allowed.join(', ') });
}

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
  if (fault.reset) {
    parts.cutConnection?.(c.env);
    return new Response(null);
  }
  const faulty = faultyResponse(fault);
  if (faulty) return faulty;
  const response = done ?? (await work());
  for (const [name, value] of Object.entries(fault.headers)) response.headers.set(name, value);
  return response;
}

async function answer(c: Context, operation: OperationId, parts: Parts): Promise<Response> {
  try {
    return send(operation, await handle(c, operation, parts));
  } catch (error) {
    if (error instanceof Refusal) return refuse(error);
    throw error;
  }
}

async function handle(c: Context, operation: OperationId, { now, world }: Parts): Promise<Answer> {
  const row: Operation = operations[operation];
  const url = new URL(c.req.url);
  const who = row.credential === 'none' ? null : authenticate(world(), c.req.raw);
  checkQuery(row, url.searchParams);
  const body = await readBody(c.req.raw);
  const call = { world: world(), now: now(), id: c.req.param('id') ?? '', url, query: url.searchParams, body };
  if (who) applyTransitions(who.account, call.world, call.now);
  // Without a credential it is a handler of an `OpenCall`.
  return handlers[operation]({ ...call, ...who } as Call);
}
