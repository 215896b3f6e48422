import * as z from 'zod/mini';
import { exampleOf } from '../../upstream/example.ts';
import { documented } from '../../upstream/fields.ts';
import { type CachePolicy, ID_FORMS, type Operation } from '../../upstream/operation.ts';
import type { Description, Doc } from '../openapi.ts';

const METHODS = { GET: 'get', POST: 'post', PATCH: 'patch', DELETE: 'delete' } as const;

/** An endpoint of the upstream, of its row. Gives names to the schemas of bodies, pages and lists. */
export function passthroughDescription(operation: Operation): Description {
  const { id, method, path, tag, summary, credential, body, answer } = operation;
  if (body) name(body.schema, `${id.charAt(0).toUpperCase()}${id.slice(1)}Body`);
  if (answer) name(answer, collectionName(answer));
  return {
    method: METHODS[method],
    path,
    operationId: id,
    tags: [tag],
    summary,
    ...(credential === 'none' && { security: [] }),
    details: (doc) => ({
      description: wordsOf(operation),
      parameters: parametersOf(operation, doc),
      ...(body && { request: { body: { required: !body.optional, content: doc.json(body.schema) } } }),
      responses: {
        ...goodAnswers(operation, doc),
        ...(credential === 'none' ? doc.limited : doc.refused),
        ...(method === 'POST' && doc.keyed),
      },
    }),
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

const parametersOf = ({ method, idForm, answer, query, cache }: Operation, doc: Doc) => [
  ...doc.parameters('query', query ?? {}),
  ...doc.parameters('path', idForm ? { id: idSchema(ID_FORMS[idForm], answer) } : {}),
  ...doc.parameters('header', method === 'POST' ? KEY : cache ? doc.conditional : {}),
];

function idSchema(form: string, answer: Operation['answer']) {
  const { id = 1091 } = answer instanceof z.ZodMiniObject ? (exampleOf(answer) as { id?: number }) : {};
  return documented(z.string().check(z.regex(new RegExp(`^${form}$`))), {
    description: 'identifier, digit for digit as it came',
    examples: [String(id)],
  });
}

const KEY = {
  'Idempotency-Key': documented(z.string().check(z.regex(/^[\x21-\x7e]{1,255}$/)), {
    description: 'new for each thing that the user does; sent again within 24 hours, it gets the first answer again',
  }),
};

function goodAnswers({ method, answer, cache }: Operation, doc: Doc) {
  const replayed = { 'Idempotency-Replayed': doc.header('This is the first answer again.', 'true') };
  const headers = { ...doc.unstored, ...(method === 'POST' && replayed) };
  if (answer === null) return { 204: { description: 'Done. No body.', headers } };
  const content = doc.json(answer);
  if (cache) return doc.cached(content);
  // Which 2xx status a write has is the upstream's to say; its documentation does not.
  return { [method === 'GET' ? '200' : '2XX']: { description: 'As the upstream sent it.', headers, content } };
}

function name(schema: z.core.$ZodType, id: string | undefined): void {
  if (id !== undefined) z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), id });
}

/** A page of `Transaction` is a `TransactionPage`, an array of `ReferralChannel` a `ReferralChannelList`. */
function collectionName(answer: z.core.$ZodType): string | undefined {
  const isPage = answer instanceof z.ZodMiniObject;
  const items: unknown = isPage ? answer.shape['results'] : answer;
  const item = items instanceof z.ZodMiniArray ? z.globalRegistry.get(items.def.element)?.id : undefined;
  return item && `${item}${isPage ? 'Page' : 'List'}`;
}
