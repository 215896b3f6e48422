import { allOverviews } from '../gateway/overviews.ts';
import { allOperations } from '../upstream/operations/index.ts';
import { aboutDescriptions } from './about.ts';
import { batchDescription } from './batch/openapi.ts';
import type { Description } from './openapi.ts';
import { overviewDescription } from './overviews/openapi.ts';
import { passthroughDescription } from './passthrough/openapi.ts';
import { pageAt, type Route } from './route.ts';
import { sessionDescriptions } from './session/openapi.ts';

/** Of all routes, also of those that the operator has off. */
const allDescriptions = (): readonly Description[] => [
  ...allOverviews.map(overviewDescription),
  batchDescription,
  ...sessionDescriptions,
  ...allOperations.map(passthroughDescription),
  ...aboutDescriptions,
];

/** The OpenAPI document. What makes it is loaded only now. */
export async function openApiText(): Promise<string> {
  const { documentOf } = await import('./openapi.ts');
  return JSON.stringify(documentOf(allDescriptions()));
}

/** `/openapi.json`. Made once. */
export function documentRoute(): Route {
  const headers = { 'Cache-Control': 'no-cache', 'Content-Type': 'application/json' };
  let text: string | undefined;
  return pageAt('/openapi.json', async () => ({ status: 200, headers, body: (text ??= await openApiText()) }));
}
