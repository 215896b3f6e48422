import { cacheStatusOf, cacheWordOf, type Reader, type Reading } from '../cache/reader.ts';
import { whenDone } from '../core/runtime.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Written } from '../gateway/write.ts';
import { jsonTextOf, unreadTextOf } from '../http/body.ts';
import { noneMatch } from '../http/headers.ts';
import { type Answer, NO_STORE, reply, REVALIDATE, timingOf } from '../http/reply.ts';
import type { ClientRequest } from '../http/request.ts';
import { withOrigin } from '../upstream/links.ts';
import { ID_FORMS, type Operation } from '../upstream/operation.ts';
import type { Table } from '../upstream/table.ts';
import type { OperationInput } from '../upstream/call.ts';
import type { Description } from './openapi.ts';
import { type Route, routeOf } from './route.ts';
import { secondsFor, waited } from './waited.ts';

/** The upstream's endpoints, each at its own path (`contract.md` section 2). */
export function passthroughRoutes(gateway: Gateway, { operations }: Table): Route[] {
  return operations.map((operation) => {
    const handle = operation.method === 'GET' ? readBy(operation, gateway) : writtenBy(operation, gateway);
    const { path, ...route } = routeOf(passthroughDescription(operation), {
      handle,
      mayBeCompressed: !operation.secrets,
    });
    return { ...route, path: path.replace(':portico_id', `:portico_id{${ID_FORMS[operation.idForm ?? 'digits']}}`) };
  });
}

const inputOf = ({ id, query }: ClientRequest): OperationInput => ({ id, query });

function readBy(operation: Operation, gateway: Gateway): Route['handle'] {
  const mayWait = operation.cache !== undefined || operation.polled === true;
  return (c) => {
    const request = c.get('porticoRequest');
    const read = { operation, input: inputOf(request) };
    const open = () => gateway.reader(request, [read]);
    const readingBy = (reader: Reader) => reader.fresh(read) ?? gateway.read(read, reader);
    const seconds = mayWait ? secondsFor(request) : 0;
    if (seconds === 0)
      return whenDone(open(), (reader) => whenDone(readingBy(reader), (one) => reply(c, readAnswer(request, one))));
    const answer = async (reader: Reader) => readAnswer(request, await readingBy(reader));
    return waited(request, gateway, { open, answer }, seconds).then((one) => reply(c, one));
  };
}

const JSON_TYPE = 'application/json';
const HIT_TIMING = timingOf('upstream', 0, 'hit');

/** The answer to a read: whole, or 304 if the client has it already (`contract.md` section 5). */
function readAnswer(request: ClientRequest, reading: Reading): Answer {
  const { entry, status, age, ttl } = reading;
  request.cache = cacheWordOf(reading);
  const timing = ttl === undefined ? timingOf('upstream', request.upstreamMs) : HIT_TIMING;
  const headers: Record<string, string> = { 'Cache-Status': cacheStatusOf(reading), Vary: 'Authorization' };
  const isKept = reading.isCacheable && status === 200;
  if (entry === null || !isKept) headers['Cache-Control'] = NO_STORE['Cache-Control'];
  if (entry === null) return { status, headers, body: null, timing };
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
  return async (c) => {
    const request = c.get('porticoRequest');
    request.cache = 'method';
    const input = async () => {
      request.checkIdempotencyKey();
      const sent = operation.body ? { body: await jsonTextOf(request) } : { unsent: await unreadTextOf(request) };
      return { ...inputOf(request), ...sent };
    };
    return reply(c, writtenAnswer(await gateway.write(operation, input, request)));
  };
}

function writtenAnswer({ status, text, replayed }: Written): Answer {
  const outcome = replayed ? { 'Idempotency-Replayed': 'true' } : { 'Cache-Status': 'portico; fwd=method' };
  const headers = { ...NO_STORE, ...outcome };
  if (text === null) return { status, headers, body: null };
  return { status, headers: { ...headers, 'Content-Type': JSON_TYPE }, body: text };
}

/** An endpoint of the upstream, of its row. */
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
