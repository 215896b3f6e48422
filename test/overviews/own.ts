import * as z from 'zod/mini';
import type { Overview } from '../../src/gateway/sections.ts';
import { json, type Step } from '../support/scripted-upstream.ts';
import { identifier, integer, pageOf, resource, text } from '../../src/upstream/fields.ts';
import { defineRows } from '../../src/upstream/operation.ts';
import { tableOf } from '../../src/upstream/table.ts';
import type { CallOptions } from '../support/http.ts';
import { openWorld } from '../support/world.ts';
import type { OverviewBody } from './helpers.ts';

const kept = { fresh: 30, stale: 60, onError: 3600 };

const author = resource('Author', { id: text('a slug', 'le-guin'), name: text('name', 'Ursula') });
const book = resource('Book', {
  id: identifier('identifier', 7),
  author: z.nullable(text('slug of its author', 'le-guin')),
  price: integer('in cents', 2500),
});

/** Of a library: of no use but to be read in overviews. */
export const rows = defineRows({
  listBooks: {
    at: 'GET /book/',
    query: { page_size: z.string().check(z.regex(/^\d{1,3}$/, 'expected a number')) },
    ...pageOf(book),
    group: 'books',
    cache: kept,
  },
  getBook: { at: 'GET /book/{id}/', answer: book, group: 'books', cache: kept },
  createBook: { at: 'POST /book/', answer: book, invalidates: ['books'] },
  listAuthors: { at: 'GET /author/', ...pageOf(author), group: 'authors', cache: kept },
  getAuthor: { at: 'GET /author/{id}/', idForm: 'slug', answer: author, group: 'authors', cache: kept },
  getKey: { at: 'GET /key/', answer: resource('Key', { key: text('a secret', 'abc') }), secrets: ['key'] },
  getNothing: { at: 'GET /nothing/', answer: null },
});

export const page = (...items: string[]) =>
  `{"count":${items.length},"next":null,"previous":null,"results":[${items.join(',')}]}`;

/** A world with these overviews and no others. `replaced`: rows in the place of those of the same name. */
export async function openOwn(overviews: readonly Overview[], replaced: Readonly<Record<string, never>> | object = {}) {
  const table = tableOf({ ...rows, ...replaced });
  const world = await openWorld({}, { tables: { table, overviews } });
  const get = async (path: string, given: Partial<CallOptions> = {}) => {
    const answer = await world.call({ path, token: world.token, ...given });
    return { ...answer, body: answer.json as OverviewBody };
  };
  const on = (path: string, answer: string | Step) =>
    world.upstream.on(`GET ${path}`, typeof answer === 'string' ? json(200, answer) : answer);
  return { ...world, get, on };
}
