import * as z from 'zod/mini';
import { ERRORS } from '../../core/errors.ts';
import { documented, exampleOf, model, text } from '../../upstream/fields.ts';
import type { Table } from '../../upstream/table.ts';
import { tools } from './tools.ts';
import { problemSchema } from './problems.ts';

export function batchDetails(table: Table, requestBody: z.ZodMiniType) {
  const [read] = readsOf(table);
  const problem = tools.problem('not_found', read?.path ?? '/');
  const good = { id: 'a', status: 200, body: read?.answer ? exampleOf(read.answer) : null };
  const example = { responses: [good, { id: 'b', status: problem.status, body: problem }] };
  const description = 'One answer for each; problems stand as they are.';
  const content = tools.json(answerSchema(table), example);
  const asked = { requests: [{ id: 'a', path: read?.path ?? '/' }] };
  return {
    description:
      '1 to 20 pass-through GETs with distinct ids, answered in order. Equal ones share a call. A body beyond what all may ' +
      'have together is a problem, `payload_too_large`: ask for it alone. Sent one by one until the upstream has accepted the credential; after a 401 or 403 the others get that problem, unsent.',
    request: { body: { required: true, content: tools.json(documented(requestBody, { id: 'BatchRequest' }), asked) } },
    responses: { 200: { description, headers: tools.unstored, content }, ...tools.refused },
  };
}

const readsOf = ({ operations }: Table) => operations.filter(({ method, answer }) => method === 'GET' && answer);

function answerSchema(table: Table) {
  const id = text('as in the request', 'a');
  const bodies = new Set(readsOf(table).flatMap(({ answer }) => answer ?? []));
  const body = documented(z.union(bodies.size > 0 ? [...bodies] : [z.unknown()]), { description: 'that of the path' });
  const good = documented(z.literal(200), { type: 'integer' });
  const read = model('BatchRead', { id, status: good, body }, 'What the call by itself would answer.');
  const bad = documented(z.literal(failures()), { type: 'integer', description: 'that of the problem' });
  const why = 'The problem that the call by itself would get, or that its answer is too large here.';
  const problem = model('BatchProblem', { id, status: bad, body: problemSchema }, why);
  const responses = documented(z.array(z.union([read, problem])), { description: 'in the order of the request' });
  return model('BatchAnswer', { responses });
}

/** Every status that a problem may have. One by one, so that in generated types `status` tells the two answers apart. */
function failures(): number[] {
  const refusals = Array.from({ length: 100 }, (_, index) => 400 + index);
  return [...new Set([...refusals, ...Object.values(ERRORS).map(({ status }) => status)])];
}
