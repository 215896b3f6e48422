import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';
import { allOverviews, type Overview } from '../../gateway/overviews.ts';
import { documentedFields } from '../../gateway/project.ts';
import { cachedAnswers, conditionalHeaders } from '../openapi/headers.ts';
import { problemAnswers, problemExample, refusedAnswer } from '../openapi/problem.ts';
import { referenceTo } from '../openapi/schemas.ts';
import { exampleOf } from '../../upstream/example.ts';
import { flag, integer, text } from '../../upstream/fields.ts';

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
  return Object.keys(sections).filter((name) => sections[name]?.required);
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

const STATES = ['fresh', 'stale', 'failed', 'skipped', 'not_applicable'] as const;

const sectionMeta = z
  .object({
    state: z.enum(STATES).meta({
      description: '`skipped`: what it depends on failed; `not_applicable`: there is none, which is no error',
    }),
    age: z.optional(integer('seconds since the upstream sent it', 0)),
  })
  .meta({ id: 'SectionMeta' });

const sectionError = z
  .object({
    section: text('its name', 'payment_method'),
    code: text('as in a problem', 'upstream_timeout'),
    status: integer('as in a problem', 504),
    detail: text('what happened, for people', 'The upstream gave no full answer in time.'),
    retryable: flag('whether it may succeed later', true),
    retry_after: z.optional(integer('seconds; where waiting helps', 12)),
  })
  .meta({ id: 'SectionError', description: 'A section that failed.' });

function answerSchema({ id, sections }: Overview) {
  const data = Object.entries(sections).map(([name, { operation }]) => [name, operation.answer ?? z.null()] as const);
  const metas = Object.keys(sections).map((name) => [name, sectionMeta] as const);
  return z
    .object({
      data: z
        .object(Object.fromEntries(data.map(([name, answer]) => [name, z.optional(z.nullable(answer))])))
        .meta({ description: 'every section asked for, with the fields asked for' }),
      errors: z.array(sectionError).meta({ examples: [[]] }),
      meta: z.object({
        complete: flag('no section failed', true),
        sections: z.object(Object.fromEntries(metas)).partial(),
      }),
    })
    .meta({ id: id.replace(/^get/, '') });
}

/** An overview as one JSON text: all there, and with a section that failed. */
function overviewContent(overview: Overview) {
  const schema = answerSchema(overview);
  const complete = exampleOf(schema) as z.infer<typeof schema>;
  const [section = ''] = Object.keys(overview.sections).slice(-1);
  const { code, status, detail, retryable } = problemExample('upstream_timeout', overview.path);
  const partial: typeof complete = {
    data: { ...complete.data, [section]: null },
    errors: [{ section, code, status, detail, retryable }],
    meta: { complete: false, sections: { ...complete.meta.sections, [section]: { state: 'failed' } } },
  };
  const examples = { complete: { value: complete }, partial: { value: partial } };
  return { 'application/json': { schema: referenceTo(schema), examples } };
}

const LINES =
  'One JSON text a line: each section the moment it is there, and at the end `{"complete":true}`, without which the ' +
  'stream was cut off.';

/** An overview as lines. OpenAPI 3.1 has no words for a sequence of JSON texts. */
function linesContent({ sections }: Overview) {
  const lines = Object.entries(sections).map(([section, { operation }]) => {
    return { section, state: 'fresh', data: operation.answer && exampleOf(operation.answer) };
  });
  const example = [...lines, { complete: true }].map((line) => `${JSON.stringify(line)}\n`).join('');
  return { 'application/x-ndjson': { schema: { type: 'string', description: LINES }, example } } as const;
}
