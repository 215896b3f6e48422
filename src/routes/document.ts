import * as z from 'zod/mini';
import type { GatewayDeps } from '../gateway/deps.ts';
import { documented, schemasIn, text as textField } from '../upstream/fields.ts';
import { batchDescription } from './batch.ts';
import { docsDescription } from './docs.ts';
import { healthDescriptions } from './health.ts';
import { homeDescription } from './home.ts';
import type { Description } from './openapi.ts';
import { outcomeDescription } from './outcome.ts';
import { overviewDescription, schemaNamesOf } from './overview-head.ts';
import { passthroughDescription } from './passthrough.ts';
import { problemsDescriptions } from './problems.ts';
import { about, pageAt, type Route } from './route.ts';
import { sessionCallsOf } from './session.ts';

const schema = documented(z.looseObject({ openapi: textField('version', '3.1.0') }), { id: 'OpenApiDocument' });

const description = about('/openapi.json', 'getOpenApiDocument', 'This document', (doc) =>
  doc.good('OpenAPI 3.1.', doc.json(schema)),
);

type Described = Pick<GatewayDeps, 'table' | 'overviews'>;

/** Of all routes, also of those that the operator has off. */
const allDescriptions = ({ table, overviews }: Described): readonly Description[] => [
  ...overviews.map(overviewDescription),
  batchDescription(table),
  outcomeDescription,
  ...sessionCallsOf(table).map(([one]) => one),
  ...table.operations.map(passthroughDescription),
  homeDescription,
  ...problemsDescriptions,
  description,
  docsDescription,
  ...healthDescriptions,
];

/** Schemas that the document has of its own. */
const OWN_SCHEMAS = new Set(
  (
    'BatchAnswer BatchProblem BatchRead BatchRequest Health LineError Links NewSession OpenApiDocument ' +
    'Problem ProblemCode ProblemDescription ProblemList SectionError SectionMeta Session SessionState ' +
    'WriteDone WriteOpen WriteOutcome'
  ).split(' '),
);

/** @throws TypeError if two calls, or two schemas, would have one name in the document */
function checkNames(described: Described): void {
  const ids = allDescriptions(described).map(({ operationId = '' }) => operationId);
  const twice = ids.find((id, at) => ids.indexOf(id) < at);
  if (twice !== undefined)
    throw new TypeError(`two calls are called \`${twice}\`: rows, overviews and calls of Portico`);
  const own = new Set([...OWN_SCHEMAS, ...described.overviews.flatMap((one) => Object.values(schemaNamesOf(one)))]);
  const bodies = described.table.operations.flatMap(({ answer, body }) => [answer, body?.schema]);
  const given = [...bodies, ...described.overviews.map(({ computed }) => computed)].filter((one) => !!one);
  const schemas = new Set(given.flatMap((one) => [...schemasIn(one)]));
  for (const [name, those] of Map.groupBy(schemas, nameOf)) {
    if (name === undefined) continue;
    if (own.has(name)) throw new TypeError(`a schema is called \`${name}\`, which is the name of one of Portico's`);
    if (those.length > 1) throw new TypeError(`two schemas are called \`${name}\``);
  }
}

const nameOf = (one: z.core.$ZodType) => z.globalRegistry.get(one)?.id;

/** The OpenAPI document. What makes it is loaded only now. */
export async function openApiText(described: Described): Promise<string> {
  const { documentOf } = await import('./openapi.ts');
  return JSON.stringify(documentOf(allDescriptions(described), described.table));
}

const SERVER = '"servers":[{"url":"/"}]';

/** @throws TypeError see `checkNames`. Made once, and answered with the path that the app is mounted under. */
export function documentRoute(described: Described): Route {
  checkNames(described);
  const headers = { 'Cache-Control': 'no-cache', 'Content-Type': 'application/json' };
  let text: string | undefined;
  return pageAt(description.path, async ({ mount }) => {
    text ??= await openApiText(described);
    const body = mount === '' ? text : text.replace(SERVER, SERVER.replace('/', mount));
    return { status: 200, headers, body, copy: described };
  });
}
