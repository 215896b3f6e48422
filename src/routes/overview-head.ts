import type { Overview } from '../gateway/sections.ts';
import type { Description } from './openapi.ts';

/** What the document calls its answer, and a line of it. */
export function schemaNamesOf({ id }: Overview) {
  const answer = id.replace(/^get/, '');
  return { answer, line: `${answer}Line` };
}

export const overviewDescription = (overview: Overview): Description => ({
  method: 'get',
  path: overview.path.replace(/:(\w+)/, '{$1}'),
  operationId: overview.id,
  tags: ['Composed'],
  summary: overview.summary,
  details: (doc) => doc.overview(overview, schemaNamesOf(overview)),
});
