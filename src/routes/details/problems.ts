import * as z from 'zod/mini';
import { CODE, ERROR_CODES, type Problem } from '../../core/errors.ts';
import { documented, flag, integer, model, text } from '../../upstream/fields.ts';
import { tools } from './tools.ts';

const errorItem = z.object({
  code: text('what is wrong', 'invalid_format'),
  message: text('the same for people', 'expected an integer of 1 or more'),
  field: z.nullable(text('dotted path; null: the whole', 'page')),
});

/** A name of its own: TypeScript takes `'a' | string` for `string`, so that in a union the codes would be lost. */
const ownCode = documented(z.enum(ERROR_CODES), {
  id: 'ProblemCode',
  description: 'Codes that the gateway describes at `/problems/{code}`; a later version may have more.',
});

const OTHERS = new RegExp(String.raw`${CODE.source}|^status_\d{3}$`);

/** `code` of a problem. */
const problemCode = documented(z.union([ownCode, z.string().check(z.maxLength(64), z.regex(OTHERS))]), {
  description:
    "the gateway's, or any other that the upstream has sent with a 4xx; `status_<status>` for a 4xx without a name",
  examples: ['upstream_unavailable'],
});

/** What `problemOf` makes, in the words of the document. */
export const problemSchema = model(
  'Problem',
  {
    type: text('path of a description of the code', '/problems/upstream_unavailable'),
    title: text('the same for every problem of the code', 'Upstream unavailable'),
    status: integer('its HTTP status', 503),
    code: problemCode,
    detail: text('what happened, for people', 'The upstream is not available right now.'),
    instance: text('path of the request', '/path/'),
    request_id: text('as in `X-Request-Id`', '01981f0e-7d2c-7000-8000-5f3b9c0d1e2f'),
    retryable: flag('whether the same request may succeed later', true),
    retry_after: z.optional(integer('seconds, as in `Retry-After`', 5)),
    outcome: documented(z.optional(z.literal('unknown')), {
      description: 'the write was sent and got no readable answer: it may have happened',
    }),
    section: z.optional(text('section of the overview that failed', 'profile')),
    errors: documented(z.array(errorItem), { description: 'details; often none' }),
  } satisfies Record<keyof Problem, z.core.$ZodType>,
  'RFC 9457.',
);

const ofDescription = { type: true, title: true, status: true, code: true, detail: true, retryable: true } as const;

const descriptionSchema = documented(z.partial(z.pick(problemSchema, ofDescription), { status: true }), {
  id: 'ProblemDescription',
  description: 'A code of the upstream’s own has no status here.',
});

const listSchema = model('ProblemList', { problems: z.array(descriptionSchema) });

type Meaning = z.infer<typeof descriptionSchema>;

export const meaningsDetails = (problems: readonly Meaning[]) =>
  tools.good('All codes, each with its title, status and description.', tools.json(listSchema, { problems }));

export function meaningDetails(problem: Meaning) {
  const code = documented(z.string(), { description: '`code` of a problem', examples: [problem.code] });
  return {
    description: "A code of the upstream's own is described once this instance has sent it, and is a 404 before.",
    parameters: tools.parameters('path', { code }),
    ...tools.good('Its title, status and description.', tools.json(descriptionSchema, problem)),
  };
}
