import * as z from 'zod/mini';
import { COMPUTED, isFromPath, linkOf, type Overview, parameterOf } from '../../gateway/sections.ts';
import { documented, exampleOf, flag, integer, model, text } from '../../upstream/fields.ts';
import { tools } from './tools.ts';
import { choicesOf } from '../selection.ts';
import { idSchema } from './passthrough.ts';
import { problemSchema } from './problems.ts';

const state = documented(z.enum(['fresh', 'stale', 'failed', 'skipped', 'not_applicable']), {
  description: '`skipped`: what it depends on failed; `not_applicable`: there is none, which is no error',
});

const age = z.optional(integer('seconds since the upstream sent it', 0));
const code = z.optional(text('why the upstream did not give a newer one, of a stale section', 'upstream_timeout'));
const sectionMeta = model('SectionMeta', { state, age, code });

const why = z.pick(problemSchema, { code: true, status: true, detail: true, retryable: true, retry_after: true }).shape;
const named = { section: text('its name', 'section'), ...why };
const sectionError = model('SectionError', named, 'A section that failed.');
const lineError = model('LineError', why, 'Why a section failed.');

const ANY = documented(z.unknown(), { description: 'JSON that is made of the other sections', examples: [{}] });

/** A section of an answer: what it is, whether its failure fails the whole, and whether there may be none. */
interface Shown {
  readonly name: string;
  readonly answer: z.core.$ZodType;
  readonly isRequired: boolean;
  readonly isLinked: boolean;
}

function shownIn({ sections, compute, computed = ANY }: Overview): Shown[] {
  const own = Object.entries(sections).map(([name, section]) => {
    const isLinked = linkOf(section) !== undefined;
    return { name, answer: section.read.answer ?? z.null(), isRequired: section.required === true, isLinked };
  });
  return compute ? [...own, { name: COMPUTED, answer: computed, isRequired: false, isLinked: false }] : own;
}

/** One member for each section. A type knows nothing of the query: it tells of an answer that has all the required ones. */
function bySection(shown: readonly Shown[], schemaOf: (one: Shown) => z.core.$ZodType, description: string) {
  const members = shown.map((one) => {
    return [one.name, one.isRequired ? schemaOf(one) : z.optional(schemaOf(one))] as const;
  });
  return documented(z.object(Object.fromEntries(members)), { description });
}

const valueOf = ({ answer, isRequired, isLinked }: Shown) => (isRequired && !isLinked ? answer : z.nullable(answer));

function dataWords(shown: readonly Shown[]): string {
  const linked = shown.filter(({ isLinked }) => isLinked).map(({ name }) => `\`${name}\``);
  const none = linked.length > 0 ? `, and ${linked.join(', ')} where what it depends on has none` : '';
  return (
    `Every section asked for. An optional one is null when it failed${none}. Only with ` +
    '`sections` or `fields` may sections, or fields of them, be missing that are required here.'
  );
}

const UNCHANGED = documented(z.array(z.string()), {
  description: 'sections that are as in your copy, and so not in `data`; only with `Prefer: changed-sections`',
  examples: [[]],
});

const errors = documented(z.array(sectionError), { examples: [[]] });

function answerSchema(overview: Overview, name: string) {
  const shown = shownIn(overview);
  return model(name, {
    data: bySection(shown, valueOf, dataWords(shown)),
    errors,
    meta: z.object({
      complete: flag('no section failed', true),
      unchanged: z.optional(UNCHANGED),
      sections: bySection(shown, () => sectionMeta, 'the same sections as in `data`'),
    }),
  });
}

/** An overview as one JSON text: all there, and with a section that failed. */
function jsonOf(overview: Overview, name: string) {
  const schema = answerSchema(overview, name);
  const complete = exampleOf(schema) as z.infer<typeof schema>;
  const section = shownIn(overview).at(-1)?.name ?? '';
  const partial: typeof complete = {
    data: { ...complete.data, [section]: null },
    errors: [{ ...(exampleOf(sectionError) as z.infer<typeof sectionError>), section }],
    meta: { complete: false, sections: { ...complete.meta.sections, [section]: { state: 'failed' } } },
  };
  const examples = { complete: { value: complete }, partial: { value: partial } };
  return { 'application/json': { schema: tools.reference(schema), examples } };
}

const LINE =
  'One line. An answer as `application/x-ndjson` is a line for each section the moment it is there, and at the end ' +
  '`{"complete":true}`, without which it was cut off. OpenAPI 3.1 has no words for such a sequence.';

/** The lines that a section may have. */
function linesOfSection({ name, answer, isRequired, isLinked }: Shown) {
  const head = { section: z.literal(name) };
  const good = z.object({ ...head, state: z.enum(['fresh', 'stale']), code, data: answer });
  const nothing = documented(z.null(), { examples: [null] });
  const none = z.object({ ...head, state: z.literal('not_applicable'), data: nothing });
  const bad = z.object({ ...head, state: z.enum(['failed', 'skipped']), error: lineError });
  return [good, ...(isLinked ? [none] : []), ...(isRequired ? [] : [bad])];
}

/** An overview as lines: what one of them may be. */
function linesOf(overview: Overview, name: string) {
  const lines = [...shownIn(overview).flatMap(linesOfSection), z.object({ complete: z.literal(true) })];
  const schema = documented(z.union(lines), { id: name, description: LINE });
  const examples = lines.map((line) => {
    const value = exampleOf(line) as { section?: string; state?: string };
    return [value.section === undefined ? 'last' : `${value.section}, ${value.state}`, { value }] as const;
  });
  return { 'application/x-ndjson': { schema: tools.reference(schema), examples: Object.fromEntries(examples) } };
}

const DESCRIPTION =
  'Sections are read at the same time and answered from the same cache as the calls behind them. One that fails is ' +
  'null and named in `errors`, unless it is required: then the whole fails.';

const ANSWER =
  'The sections, as lines where `Accept` prefers `application/x-ndjson`. `no-store` and without `ETag` as lines or ' +
  'when a section failed.';

interface SchemaNames {
  readonly answer: string;
  readonly line: string;
}

/** `names`: of the schemas of its answer and of a line of it. */
export const overviewDetails = (overview: Overview, names: SchemaNames) => ({
  description: wordsOf(overview),
  parameters: [
    ...tools.parameters('path', pathOf(overview)),
    ...tools.parameters('query', queryOf(overview)),
    ...tools.parameters('header', { ...tools.conditional, Prefer }),
  ],
  responses: {
    ...tools.cached({ ...jsonOf(overview, names.answer), ...linesOf(overview, names.line) }, ANSWER),
    ...tools.refused,
  },
});

function wordsOf({ sections, compute }: Overview): string {
  const required = Object.keys(sections).filter((name) => sections[name]?.required);
  const needed = required.length > 0 && `Required here: ${required.join(', ')}.`;
  const made = compute && `\`${COMPUTED}\` is made of the other sections, without those that were not asked for.`;
  return [DESCRIPTION, needed, made].filter(Boolean).join(' ');
}

/** Its example is the id of what the first section shows that is read by it. */
function pathOf(overview: Overview) {
  const parameter = parameterOf(overview);
  const first = Object.values(overview.sections).find(({ id }) => isFromPath(id));
  return parameter ? { [parameter.name]: idSchema(parameter.form, first?.read.answer ?? null) } : {};
}

const Prefer = documented(z.string(), {
  description:
    '`handling=strict`: any section that fails fails the whole; with `If-None-Match`: `changed-sections`: only those that ' +
    'differ; `wait=30`: the answer comes once it is no 304, or as one after so many seconds (30 at most)',
});

const SIZE = 'how many items the page of this section has, from 1 to 100';

const CHOICE =
  'what to answer, comma-separated, and nothing else, even where the schema requires it; all when left out. ' +
  'Fields of a page are those of its items';

const queryOf = (overview: Overview) =>
  Object.fromEntries<z.core.$ZodType>([
    ...Array.from(choicesOf(overview).names, ([parameter, names]) => {
      return [parameter, documented(z.array(z.enum([...names])), { description: CHOICE })] as const;
    }),
    ...Array.from(choicesOf(overview).sized.keys(), (parameter) => [parameter, integer(SIZE, 5)] as const),
  ]);
