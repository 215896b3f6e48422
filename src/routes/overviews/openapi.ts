import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';
import { allOverviews, type Overview, type Section } from '../../gateway/overviews.ts';
import { documentedFields } from '../../gateway/project.ts';
import { cachedAnswers, conditionalHeaders } from '../openapi/headers.ts';
import { problemAnswers, problemCode, problemExample, refusedAnswer } from '../openapi/problem.ts';
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
  const description = `${what}, comma-separated, and no others, even where the schema requires them; all when left out`;
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
    code: problemCode.meta({ examples: ['upstream_timeout'] }),
    status: integer('as in a problem', 504),
    detail: text('what happened, for people', 'The upstream gave no full answer in time.'),
    retryable: flag('whether it may succeed later', true),
    retry_after: z.optional(integer('seconds; where waiting helps', 12)),
  })
  .meta({ id: 'SectionError', description: 'A section that failed.' });

const lineError = sectionError.omit({ section: true }).meta({ id: 'LineError', description: 'Why a section failed.' });

/** One member for each section. A type knows nothing of the query: it tells of an answer that has all the required ones. */
function bySection({ sections }: Overview, schemaOf: (section: Section) => z.core.$ZodType, description: string) {
  const members = Object.entries(sections).map(([name, section]) => {
    return [name, section.required ? schemaOf(section) : z.optional(schemaOf(section))] as const;
  });
  return z.object(Object.fromEntries(members)).meta({ description });
}

const answerOf = ({ operation }: Section) => operation.answer ?? z.null();

const DATA =
  'Every section asked for. An optional one is null when it failed, and `payment_method` without a card. Only with ' +
  '`sections` or `fields` may sections, or fields of them, be missing that are required here.';

function answerSchema(overview: Overview) {
  return z
    .object({
      data: bySection(overview, (one) => (one.required ? answerOf(one) : z.nullable(answerOf(one))), DATA),
      errors: z.array(sectionError).meta({ examples: [[]] }),
      meta: z.object({
        complete: flag('no section failed', true),
        sections: bySection(overview, () => sectionMeta, 'the same sections as in `data`'),
      }),
    })
    .meta({ id: overview.id.replace(/^get/, '') });
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

const LINE =
  'One line. An answer as `application/x-ndjson` is a line for each section the moment it is there, and at the end ' +
  '`{"complete":true}`, without which it was cut off. OpenAPI 3.1 has no words for such a sequence.';

/** The lines that a section may have. */
function linesOf([name, section]: [string, Section]) {
  const head = { section: z.literal(name) };
  const good = z.object({ ...head, state: z.enum(['fresh', 'stale']), data: answerOf(section) });
  const none = z.object({ ...head, state: z.literal('not_applicable'), data: z.null().meta({ examples: [null] }) });
  const bad = z.object({ ...head, state: z.enum(['failed', 'skipped']), error: lineError });
  return [good, ...(section.cardOf === undefined ? [] : [none]), ...(section.required ? [] : [bad])];
}

/** An overview as lines: what one of them may be. */
function linesContent({ id, sections }: Overview) {
  const last = z.object({ complete: z.literal(true) });
  const lines = [...Object.entries(sections).flatMap(linesOf), last];
  const schema = z.union(lines).meta({ id: `${id.replace(/^get/, '')}Line`, description: LINE });
  const examples = lines.map((line) => {
    const value = exampleOf(line) as { section?: string; state?: string };
    return [value.section === undefined ? 'last' : `${value.section}, ${value.state}`, { value }] as const;
  });
  return { 'application/x-ndjson': { schema: referenceTo(schema), examples: Object.fromEntries(examples) } };
}
