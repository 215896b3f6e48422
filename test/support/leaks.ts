import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { allOperations, allOverviews } from './account-api.ts';
import { SECRET_FORMS } from './secrets.ts';

/** Looked for outside of ids and hashes, where sixteen digits in a row turn up by chance. */
const CARD = /(?<![\d.])\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}(?!\d)/;

/** Contract section 9; then those of lines that are not about a request. */
const FIELDS: ReadonlySet<string> = new Set(
  `time level msg request_id trace_id method route status duration_ms operation via account cache upstream_calls upstream_ms
  client code reason outcome failed stale legs field count fault signal url host errno upstream_status`.split(/\s+/),
);

/** Routes are templates: a path or a query that a client wrote is none. */
const ROUTES: ReadonlySet<string> = new Set([
  ...[...allOperations, ...allOverviews].map(({ path }) => path),
  '/problems',
  '/problems/{code}',
  '/',
  '(none)',
]);
const ROUTE_OF_OURS =
  /^\/(?:bff\/v1|docs)(?:\/[a-z.-]+)*$|^\/(?:openapi\.json|mcp|livez|readyz|metrics|console(?:\/[a-zA-Z.]+)?)$/;
/** Of tables and handlers that tests have of their own: words and parameters, no values of them. */
const ROUTE_OF_TESTS = /^\/(?:own|of|v1|book|author|bff\/v1|api\/v2\/badge)(?:\/(?:[a-z-]+|\{\w+\}|:\w+|\*))*\/?$/;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Of what the console shows, and of what is in it, at any depth. */
const SHOWN: ReadonlySet<string> = new Set(
  `at version startedAt slowMs circuit since probeAt plots stepMs status duration p50 p95 cache failures requests number isBad
  accounts accountsSince unknown id ms operation account code reason sections fresh failed stale legs name sums phases phase leg
  start end outcome joined requestId hasKey`.split(/\s+/),
);
/** Objects whose members are named by what they count. */
const BY_NAME: ReadonlySet<string> = new Set(['status', 'cache', 'failures', 'sums']);
/** Ids, hashes and times, where digits in a row turn up by chance. */
const IDS = new Set('id requestId joined request_id trace_id account at since probeAt startedAt'.split(' '));

const namesIn = (value: unknown): readonly string[] =>
  typeof value !== 'object' || value === null
    ? []
    : Array.isArray(value)
      ? value.flatMap(namesIn)
      : Object.entries(value).flatMap(([name, inner]) => [name, ...(BY_NAME.has(name) ? [] : namesIn(inner))]);

/** What may be in neither. */
const secretsIn = (text: string) => ({
  ...Object.fromEntries(Object.entries(SECRET_FORMS).map(([what, form]) => [what, form.test(text)])),
  'a card number': CARD.test(JSON.stringify(JSON.parse(text), (name, value: unknown) => (IDS.has(name) ? '' : value))),
});

const named = (faults: Readonly<Record<string, boolean>>) => Object.keys(faults).filter((what) => faults[what]);

/** What is wrong with a line that was logged; nothing with a good one. */
function faultsOfLine(text: string): readonly string[] {
  const line = JSON.parse(text) as Readonly<Record<string, unknown>> & { route?: string; request_id?: string };
  const { route = '(none)', request_id: requestId = '-' } = line;
  return named({
    ...secretsIn(text),
    'a field that nobody listed': Object.keys(line).some((name) => !FIELDS.has(name)),
    'a route that is none': !ROUTES.has(route) && !ROUTE_OF_OURS.test(route) && !ROUTE_OF_TESTS.test(route),
    'a request id of another form': !REQUEST_ID.test(requestId),
  });
}

/** What is wrong with what a console shows. */
const faultsOfShown = (text: string): readonly string[] =>
  named({
    ...secretsIn(text),
    'an address': text.includes('127.0.0.1'),
    'a member that nobody listed': namesIn(JSON.parse(text)).some((name) => !SHOWN.has(name)),
  });

/** Whole lines of JSON; runs beside this one may still be writing. Else these are banners, and what tools print. */
function linesOf(file: string): readonly string[] {
  try {
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    return lines.filter((line) => line.startsWith('{') && line.endsWith('}'));
  } catch {
    return []; // cleaned away by a run that began just now
  }
}

/** Of all that the gateways of a run have logged, and their consoles have shown. */
export const faultsIn = (folder: string): readonly string[] =>
  readdirSync(folder).flatMap((file) => {
    const faultsOf = file.endsWith('.console') ? faultsOfShown : faultsOfLine;
    return linesOf(join(folder, file)).flatMap((line) => faultsOf(line).map((fault) => `${fault} in ${file}: ${line}`));
  });
