import { cacheStatusOf, cacheWordOf, type ReadResult } from '../cache/read.ts';
import { whenDone } from '../core/runtime.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Written } from '../gateway/write.ts';
import { checkIdempotencyKey, ignoredBodyOf, jsonTextOf } from '../http/body.ts';
import { noneMatch } from '../core/headers.ts';
import { type Answer, NO_STORE, REVALIDATE, timingOf } from '../http/reply.ts';
import { type HonoRequest, routeParam } from '../http/request.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { withOrigin } from '../upstream/links.ts';
import type { Operation } from '../upstream/operation.ts';
import type { Table } from '../upstream/table.ts';
import type { Description } from './openapi.ts';
import { type Route, routeOf } from './route.ts';
import { waitSecondsOf, answerOnChange } from './waited.ts';

/** A route for each row, at the row's own path (`contract.md` section 2). */
export function passthroughRoutes(gateway: Gateway, { operations }: Table): Route[] {
  return operations.map((operation) => {
    const handle = operation.method === 'GET' ? readBy(operation, gateway) : writtenBy(operation, gateway);
    const mayBeCompressed = !(operation.secrets ?? operation.signsIn);
    return routeOf(passthroughDescription(operation), { handle, mayBeCompressed }, operation.params);
  });
}

/** Reads the values of the path's parameters as one text. */
function idBy({ params }: Operation): (request: HonoRequest) => string | undefined {
  const [first, ...others] = Object.keys(params).map(routeParam);
  if (first === undefined) return () => undefined;
  return (request) => others.reduce((id, name) => `${id}/${request.param(name)}`, request.param(first));
}

function readBy(operation: Operation, gateway: Gateway): Route['handle'] {
  const mayWait = operation.cache !== undefined || operation.polled === true;
  const row = gateway.rows.of(operation);
  const idOf = idBy(operation);
  return (request) => {
    const read = row.read(idOf(request), request.query);
    const open = () => gateway.admit(request, [read]);
    const answer = (snapshot: Snapshot) =>
      whenDone(gateway.read(read, request, snapshot), (result) => readAnswer(request, result));
    const seconds = mayWait ? waitSecondsOf(request) : 0;
    return seconds === 0 ? whenDone(open(), answer) : answerOnChange(request, gateway, { open, answer }, seconds);
  };
}

const JSON_TYPE = 'application/json';
const HIT_TIMING = timingOf('upstream', 0, 'hit');

/** The answer to a read: its body, or 304 if the client has it already (`contract.md` section 5). */
function readAnswer(request: HonoRequest, result: ReadResult): Answer {
  const { entry, status, age, ttl } = result;
  request.cache = cacheWordOf(result);
  const timing = ttl === undefined ? timingOf('upstream', request.upstreamMs) : HIT_TIMING;
  const headers: Record<string, string> = { 'Cache-Status': cacheStatusOf(result), Vary: 'Authorization' };
  const isKept = result.isCacheable && status === 200;
  if (entry === null || !isKept) headers['Cache-Control'] = NO_STORE['Cache-Control'];
  if (entry === null) return { status, headers, body: null, timing };
  if (entry.link) headers['Link'] = withOrigin(entry.link, request);
  if (isKept) {
    headers['Cache-Control'] = REVALIDATE;
    headers['Age'] = String(age);
  }
  if (isKept || (entry.etag !== '' && status === 200)) {
    headers['ETag'] = entry.etag;
    if (noneMatch(request.header('if-none-match'), entry.etag)) return { status: 304, headers, body: null, timing };
  }
  headers['Content-Type'] = JSON_TYPE;
  return { status, headers, body: withOrigin(entry, request), timing, copy: entry };
}

function writtenBy(operation: Operation, gateway: Gateway): Route['handle'] {
  const idOf = idBy(operation);
  return async (request) => {
    request.cache = 'method';
    const input = async () => {
      checkIdempotencyKey(request.idempotencyKey);
      const sent = operation.body ? { body: await jsonTextOf(request) } : { ignoredBody: await ignoredBodyOf(request) };
      return { id: idOf(request), query: request.query, ...sent };
    };
    return writtenAnswer(await gateway.writes.write(request, operation, input));
  };
}

function writtenAnswer({ status, text, replayed }: Written): Answer {
  const outcome = replayed ? { 'Idempotency-Replayed': 'true' } : { 'Cache-Status': 'portico; fwd=method' };
  const headers = { ...NO_STORE, ...outcome };
  if (text === null) return { status, headers, body: null };
  return { status, headers: { ...headers, 'Content-Type': JSON_TYPE }, body: text };
}

/** Describes the endpoint of a row. */
export function passthroughDescription(operation: Operation): Description {
  const { id, method, path, tag, summary, credential } = operation;
  return {
    method: method.toLowerCase() as Lowercase<typeof method>,
    path,
    operationId: id,
    tags: [tag.name],
    summary,
    ...(credential === 'none' && { security: [] }),
    details: (doc) => doc.passthrough(operation),
  };
}
