import * as z from 'zod/mini';
import { documented, integer, model, timestamp } from '../../upstream/fields.ts';
import { shared } from './answers.ts';
import { KEY } from './passthrough.ts';
import { tools } from './tools.ts';

const done = model('WriteDone', {
  state: z.literal('done'),
  status: integer('of the answer that the key gets again', 201),
  at: z.optional(timestamp('when that was recorded; absent if an earlier release did it', '2026-11-22T18:09:43.000Z')),
});

const open = model('WriteOpen', {
  state: documented(z.enum(['under_way', 'unknown']), {
    description: '`unknown`: the write was sent, and may have happened',
    examples: ['unknown'],
  }),
});

const schema = documented(z.union([done, open]), { id: 'WriteOutcome' });

export function outcomeDetails() {
  const parameters = tools.parameters('header', KEY).map((key) => ({ ...key, required: true }));
  const description = 'What is known of the write. Nothing is sent to the upstream.';
  const good = { description, headers: tools.unstored, content: tools.json(schema) };
  return { parameters, responses: { 200: good, 404: shared('NoOutcome'), ...tools.refused } };
}
