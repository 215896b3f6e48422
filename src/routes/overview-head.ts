import type { Overview } from '../gateway/sections.ts';
import type { Description } from './openapi.ts';

export const overviewDescription = (overview: Overview): Description => ({
  method: 'get',
  path: overview.path.replace(/:(\w+)/, '{$1}'),
  operationId: overview.id,
  tags: ['Composed'],
  summary: overview.summary,
  details: (doc) => doc.overview(overview),
});
