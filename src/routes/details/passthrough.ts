import * as z from 'zod/mini';
import { documented, exampleOf } from '../../upstream/fields.ts';
import { type CachePolicy, ID_FORMS, type Operation } from '../../upstream/operation.ts';
import { tools } from './tools.ts';

export function passthroughDetails(operation: Operation) {
  const { method, credential, body } = operation;
  return {
    description: wordsOf(operation),
    parameters: parametersOf(operation),
    ...(body && { request: { body: { required: !body.optional, content: tools.json(body.schema) } } }),
    responses: {
      ...goodAnswers(operation),
      ...(credential === 'none' ? tools.limited : tools.refused),
      ...(method === 'POST' && tools.keyed),
    },
  };
}

function wordsOf({ method, description, cache, exclusive }: Operation): string {
  const held = cache ? cacheWords(cache) : method === 'GET' && 'Never held in the cache.';
  const once = exclusive && 'Without a key, the second of two equal ones at the same moment is refused with 409.';
  return [description, held, once].filter(Boolean).join(' ');
}

const cacheWords = ({ fresh, stale, onError }: CachePolicy) =>
  `Held for the account: fresh for ${fresh} s, then up to ${stale} s while it is refreshed and up to ${onError} s ` +
  'while the upstream fails, unless the operator has set other times.';

const parametersOf = ({ method, idForm, answer, query, cache, polled }: Operation) => [
  ...tools.parameters('query', query ?? {}),
  ...tools.parameters('path', idForm ? { id: idSchema(ID_FORMS[idForm], answer) } : {}),
  ...tools.parameters('header', method === 'POST' ? KEY : {}),
  ...tools.parameters('header', cache || polled ? { ...tools.conditional, ...tools.awaited } : {}),
];

/** `form`: a pattern. `answer`: whose id is the example. */
export function idSchema(form: string, answer: Operation['answer']) {
  const { id = 1091 } = answer instanceof z.ZodMiniObject ? (exampleOf(answer) as { id?: number }) : {};
  return documented(z.string().check(z.regex(new RegExp(`^${form}$`))), {
    description: 'identifier, digit for digit as it came',
    examples: [String(id)],
    type: ['string', 'integer'], // so that the id in a body fits
  });
}

export const KEY = {
  'Idempotency-Key': documented(z.string().check(z.regex(/^[\x21-\x7e]{1,255}$/)), {
    description: 'new for each thing that the user does; sent again within 24 hours, it gets the first answer again',
  }),
};

function goodAnswers({ method, answer, cache, polled }: Operation) {
  const replayed = { 'Idempotency-Replayed': tools.header('This is the first answer again.', 'true') };
  const headers = { ...tools.unstored, ...(method === 'POST' && replayed) };
  if (answer === null) return { 204: { description: 'Done. No body.', headers } };
  const content = tools.json(answer);
  if (cache) return tools.cached(content);
  if (polled) return tools.polled(content);
  // Which 2xx status a write has is the upstream's to say; its documentation does not.
  return { [method === 'GET' ? '200' : '2XX']: { description: 'As the upstream sent it.', headers, content } };
}
