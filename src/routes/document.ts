import type { GatewayDeps } from '../gateway/deps.ts';
import { resource, text as textField } from '../upstream/fields.ts';
import { batchDescription } from './batch.ts';
import { docsDescription } from './docs.ts';
import { healthDescriptions } from './health.ts';
import type { Description } from './openapi.ts';
import { outcomeDescription } from './outcome.ts';
import { overviewDescription } from './overviews.ts';
import { passthroughDescription } from './passthrough.ts';
import { problemsDescriptions } from './problems.ts';
import { about, pageAt, type Route } from './route.ts';
import { sessionCallsOf } from './session.ts';

const schema = resource('OpenApiDocument', { openapi: textField('version', '3.1.0') });

const description = about('/openapi.json', 'getOpenApiDocument', 'This document', (doc) =>
  doc.good('OpenAPI 3.1.', doc.json(schema)),
);

type Described = Pick<GatewayDeps, 'table' | 'overviews'>;

/** Describes all routes, also those that the operator has turned off. */
const allDescriptions = ({ table, overviews }: Described): readonly Description[] => [
  ...overviews.map(overviewDescription),
  batchDescription(table),
  outcomeDescription,
  ...sessionCallsOf(table).map(([one]) => one),
  ...table.operations.map(passthroughDescription),
  ...problemsDescriptions,
  description,
  docsDescription,
  ...healthDescriptions,
];

/** The OpenAPI document. What makes it is loaded only now. */
export async function openApiText(described: Described): Promise<string> {
  const { documentOf } = await import('./openapi.ts');
  return JSON.stringify(documentOf(allDescriptions(described), described.table));
}

const SERVER = '"servers":[{"url":"/"}]';

/**
 * Made once, and answered with the path that the app is mounted under.
 * @throws TypeError if two calls would have one name in the document
 */
export function documentRoute(described: Described): Route {
  const ids = allDescriptions(described).map(({ operationId = '' }) => operationId);
  const twice = ids.find((id, at) => ids.indexOf(id) < at);
  if (twice !== undefined)
    throw new TypeError(`two calls are called \`${twice}\`: rows, overviews and calls of Portico`);
  const headers = { 'Cache-Control': 'no-cache', 'Content-Type': 'application/json' };
  let text: string | undefined;
  return pageAt(description.path, async ({ mount }) => {
    text ??= await openApiText(described);
    const body = mount === '' ? text : text.replace(SERVER, SERVER.replace('/', mount));
    return { status: 200, headers, body, copy: described };
  });
}
