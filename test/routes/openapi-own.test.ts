import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, test } from 'vitest';
import { overview } from '../../src/gateway/overviews.ts';
import { from, fromPath } from '../../src/gateway/sections.ts';
import { openApiText } from '../../src/routes/document.ts';
import { integer, model } from '../../src/upstream/fields.ts';
import { tableOf } from '../../src/upstream/table.ts';
import { rows } from '../overviews/own.ts';

const total = model('BookTotal', { cents: integer('the price of all', 2500) });

const sections = {
  book: { read: rows.getBook, id: fromPath, required: true },
  author: { read: rows.getAuthor, id: from('book', 'author') },
} as const;

const overviews = [
  overview('/bff/v1/book-overview/:book', sections, ({ book }) => ({ cents: book.price }), { computed: total }),
  overview('/bff/v1/author-overview/:slug', { author: { read: rows.getAuthor, id: fromPath } }, () => 1),
];

const text = await openApiText({ table: tableOf(rows), overviews });
const document = JSON.parse(text) as { paths: Record<string, { get: unknown }>; components: { schemas: object } };
const itemAt = (path: string) => document.paths[path]?.get;

test('the document of overviews of one’s own is valid, and knows nothing of others', async () => {
  const { errors } = await new Validator().validate(JSON.parse(text) as Record<string, unknown>);
  expect(errors).toBeUndefined();
  expect(JSON.stringify(Object.entries(document.paths).filter(([path]) => path.includes('-overview')))).not.toMatch(
    /payment|card/,
  );
});

describe('the document', () => {
  test('has the parameter of a path, by its own name and of the form that it may have', () => {
    expect(itemAt('/bff/v1/book-overview/{book}')).toMatchObject({
      operationId: 'getBookOverview',
      parameters: expect.arrayContaining([
        expect.objectContaining({ name: 'book', in: 'path', required: true }),
        expect.objectContaining({ name: 'sections', in: 'query' }),
      ]) as unknown,
    });
    const pattern = (path: string) => /"pattern":"(.*?)"/.exec(JSON.stringify(itemAt(path)))?.[1];
    expect(pattern('/bff/v1/book-overview/{book}')).toBe('^[0-9]{1,19}$');
    expect(pattern('/bff/v1/author-overview/{slug}')).toBe('^[A-Za-z0-9_-]{1,64}$');
  });

  test('has what is computed as a section that may be asked for, but not trimmed', () => {
    const item = JSON.stringify(itemAt('/bff/v1/book-overview/{book}'));
    expect(item).toContain('"enum":["book","author","computed"]');
    expect(item).not.toContain('fields[computed]');
    expect(document.components.schemas).toMatchObject({
      BookTotal: { properties: { cents: { type: 'integer' } } },
      BookOverview: {
        properties: {
          data: {
            properties: {
              author: { anyOf: [{ $ref: '#/components/schemas/Author' }, { type: 'null' }] },
              computed: { anyOf: [{ $ref: '#/components/schemas/BookTotal' }, { type: 'null' }] },
            },
            required: ['book'],
          },
        },
      },
    });
  });
});
