import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';
import type { Overview } from '../../gateway/overview.ts';
import { allOverviews } from '../../gateway/overviews/index.ts';
import { documentedFields } from '../../gateway/project.ts';
import { cachedAnswers, conditionalHeaders } from '../openapi/headers.ts';
import { linesContent, overviewContent } from './openapi-answer.ts';
import { problemAnswers, refusedAnswer } from '../openapi/problem.ts';

const DESCRIPTION =
  'Sections are read at the same time and answered from the same cache as the calls behind them. One that fails is ' +
  'null and named in `errors`, unless it is required: then the whole fails.';

const ANSWER =
  'The sections, as lines where `Accept` prefers `application/x-ndjson`. `no-store` and without `ETag` as lines or ' +
  'when a section failed.';

export function overviewPaths(tag: string): RouteConfig[] {
  return allOverviews.map((overview) => ({
    method: 'get',
    path: overview.path,
    operationId: overview.id,
    tags: [tag],
    summary: overview.summary,
    description: `${DESCRIPTION} Required here: ${requiredOf(overview).join(', ')}.`,
    request: { query: z.object(queryOf(overview)), headers: overviewHeaders },
    responses: {
      ...cachedAnswers({ ...overviewContent(overview), ...linesContent(overview) }, ANSWER),
      ...refusedAnswer,
      ...problemAnswers,
    },
  }));
}

function requiredOf({ sections }: Overview): string[] {
  const all = Object.entries(sections);
  return all.filter(([, section]) => section.from === 'read' && section.required).map(([name]) => name);
}

const overviewHeaders = conditionalHeaders.extend({
  Prefer: z.string().optional().meta({ description: '`handling=strict`: any section that fails fails the whole' }),
});

function queryOf({ sections }: Overview): Record<string, z.ZodType> {
  const fields = Object.entries(sections).map(([name, { operation }]) => {
    const names = [...documentedFields(operation)];
    return [`fields[${name}]`, namesParameter(names, `fields of ${name}${operation.paged ? ' items' : ''} to answer`)];
  });
  return {
    sections: namesParameter(Object.keys(sections), 'sections to answer'),
    ...(Object.fromEntries(fields) as Record<string, z.ZodType>),
  };
}

/** `a,b` in one parameter. */
function namesParameter(names: readonly string[], what: string): z.ZodType {
  const description = `${what}, comma-separated; all when left out`;
  return z
    .array(z.enum(names))
    .optional()
    .meta({ description, param: { style: 'form', explode: false } });
}
