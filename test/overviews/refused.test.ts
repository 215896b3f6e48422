import { describe, expect, test } from 'vitest';
import { overview, overviewsIn } from '../../src/gateway/overviews.ts';
import { from, fromPath, type Section, type Sections } from '../../src/gateway/sections.ts';
import { defineRows, type Operation, type Row } from '../../src/upstream/operation.ts';
import { tableOf } from '../../src/upstream/table.ts';
import { rows } from './own.ts';

const books: Section = { read: rows.listBooks };

/** As where nobody has checked the types. */
const made = (path: string, sections: unknown, ...rest: unknown[]) => {
  const untyped = overview as (...given: unknown[]) => ReturnType<typeof overview>;
  return untyped(path, sections, ...rest);
};

const at = (path: string, more = {}) => [path, { books, ...more }] as const;
const having = (section: unknown, name = 'one') => ['/bff/v1/mine', { books, [name]: section }] as const;

describe('an overview', () => {
  test.each<readonly [why: string, given: readonly unknown[], words: string]>([
    ['elsewhere', at('/api/mine'), 'is not at a path such as `/bff/v1/inbox-overview`'],
    ['at a path with a slash at its end', at('/bff/v1/mine/'), 'is not at a path'],
    ['at a path with dots', at('/bff/v1/../api'), 'is not at a path'],
    ['at a path with a letter that is encoded', at('/bff/v1/m%20'), 'is not at a path'],
    ['at a path that begins with a parameter', at('/bff/v1/:id'), 'is not at a path'],
    ['at a path with two parameters', at('/bff/v1/mine/:id/:other'), 'is not at a path'],
    ['at a path with half a parameter', at('/bff/v1/mine/a:id'), 'is not at a path'],
    ['at the path of the batch', at('/bff/v1/batch'), 'is at a path that Portico has itself'],
    ['at the path of outcomes', at('/bff/v1/outcome'), 'is at a path that Portico has itself'],
    ['below the path of sessions', at('/bff/v1/session/mine'), 'is at a path that Portico has itself'],
    ['without sections', ['/bff/v1/mine', {}], 'has no sections'],
    ['with an id that is none', [...at('/bff/v1/mine'), undefined, { id: 'a b' }], 'needs an id of letters'],
    [
      'that says what it computes, and does not',
      [...at('/bff/v1/mine'), undefined, { computed: rows.listBooks.answer }],
      'says what is computed, and has no function',
    ],
    ['with a parameter for nothing', at('/bff/v1/mine/:id'), 'has a parameter in its path that no section takes'],
    [
      'without the parameter for an id',
      having({ read: rows.getBook, id: fromPath }),
      'has a section that wants a parameter, and none in its path',
    ],
    [
      'without the parameter for a query',
      having({ read: rows.listBooks, query: { q: fromPath } }),
      'has a section that wants a parameter, and none in its path',
    ],
    ['with a section by the name of what is computed', having(books, 'computed'), 'has the name of what'],
    ['with a section whose name is none', having(books, 'a"b'), 'needs a name of letters, digits and _'],
    ['with a write', having({ read: rows.createBook }), 'reads `createBook`, which is no GET'],
    ['with a row that answers nothing', having({ read: rows.getNothing }), 'reads `getNothing`, which has no answer'],
    ['without the id of a row', having({ read: rows.getBook }), 'gives `getBook` no id'],
    [
      'with an id for a row that has none',
      having({ ...books, id: '5' }),
      'gives `listBooks` an id, which it takes none of',
    ],
    [
      'with an id of another form',
      having({ read: rows.getBook, id: 'x' }),
      'gives `getBook` an id that is not of its form',
    ],
    [
      'with a query that the row refuses',
      having({ ...books, query: { page_size: 'many' } }),
      'asks `listBooks` for a `page_size` that it does not take: expected a number',
    ],
    [
      'with an id of a section that there is not',
      having({ read: rows.getBook, id: from('shelves', 'book') }),
      'has its id from `shelves`, which is no section before it',
    ],
    [
      'with an id of a section that stands behind it',
      ['/bff/v1/mine', { one: { read: rows.getBook, id: from('books', 'count') }, books }],
      'has its id from `books`, which is no section before it',
    ],
    [
      'with an id of a section that has its own from another one',
      [
        '/bff/v1/mine',
        {
          books,
          one: { read: rows.getBook, id: from('books', 'count') },
          author: { read: rows.getAuthor, id: from('one', 'author') },
        },
      ],
      'has its id from `one`, which has its own from another section',
    ],
    [
      'with an id of a member that no answer has',
      having({ read: rows.getBook, id: from('books', 'first') }),
      'has its id from `first` of `books`, which an answer of `listBooks` does not have',
    ],
    [
      'with an id of what every object has',
      having({ read: rows.getBook, id: from('constructor', 'name') }),
      'has its id from `constructor`, which is no section before it',
    ],
    [
      'that looks for an item in what is no page',
      having({ read: rows.getBook, id: from('books', 'count', rows.getKey) }),
      'looks in `getKey`, which is no page',
    ],
    [
      'that looks for an item in what needs an id',
      having({ read: rows.getBook, id: from('books', 'count', rows.getAuthor) }),
      'looks in `getAuthor`, which needs an id',
    ],
  ])('%s is refused in words', (_, [path, sections, ...rest], words) => {
    const make = () => made(path as string, sections, ...rest);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(`the overview \`${path as string}\` `);
    expect(make).toThrow(words);
  });
});

const BY_LIST = from('book', 'author', rows.listAuthors);

describe('a gateway', () => {
  const one = made(...at('/bff/v1/mine'));
  const other = (path: string, sections: Sections = { books }) => made(path, sections);
  const oneBook: Sections = { books, one: { read: rows.getBook, id: fromPath } };

  test.each([
    ['two overviews at a path', [one, one], 'is at the path of another overview'],
    [
      'two whose paths differ in the name of the parameter',
      [other('/bff/v1/mine/:a', oneBook), other('/bff/v1/mine/:b', oneBook)],
      'is at the path of another overview',
    ],
    ['two of one id', [one, other('/bff/v1/Mine')], 'has the id `getMine`, which a row or another overview has'],
    ['one with the id of a row', [other('/bff/v1/book')], 'has the id `getBook`, which a row or another overview has'],
  ])('with %s is refused in words', (_, overviews, words) => {
    expect(() => overviewsIn(tableOf(rows), overviews)).toThrow(words);
  });

  test.each([
    ['that it reads', { books }],
    [
      'that it looks in',
      { books: { read: rows.getKey }, one: { read: rows.getBook, id: from('books', 'key', rows.listBooks) } },
    ],
  ])('without a row %s is refused in words', (_, sections) => {
    const { listBooks: _without, ...others } = rows;
    const words = 'the overview `/bff/v1/mine` reads `listBooks`, which is not among the rows of the gateway';
    expect(() => overviewsIn(tableOf(others), [other('/bff/v1/mine', sections)])).toThrow(words);
  });

  test('with a write of an item that leaves the list in which an overview looks for it is refused in words', () => {
    const sections = { book: { read: rows.getBook, id: '7' }, author: { read: rows.getAuthor, id: BY_LIST } };
    const renaming = defineRows as (all: object) => { readonly rename: Operation };
    const renamed = (...invalidates: NonNullable<Row['invalidates']>) =>
      renaming({ rename: { at: 'PATCH /author/{id}/', idForm: 'slug', answer: null, invalidates } }).rename;
    const rename = (...all: NonNullable<Row['invalidates']>) => tableOf({ ...rows, rename: renamed(...all) });
    const overviews = [other('/bff/v1/mine', sections)];
    expect(() => overviewsIn(rename({ item: 'authors' }), overviews)).toThrow(
      'looks for `author` in `listAuthors`, which `rename` does not invalidate with its item',
    );
    const elsewhere = { ...rows.listAuthors, group: 'shelves' };
    expect(() =>
      overviewsIn(tableOf({ ...rows, listAuthors: elsewhere, rename: renamed('authors') }), overviews),
    ).toThrow('looks for `author` in `listAuthors`, which `rename` does not invalidate with its item');
    for (const good of [[{ item: 'authors' }, 'authors'], ['everything'], [{ item: 'books' }]] as const)
      expect(overviewsIn(rename(...good), overviews)).toHaveLength(1);
  });

  test('whose row of that name wants an id is refused in words', () => {
    const table = tableOf({ ...rows, listBooks: { ...rows.getBook, id: 'listBooks', path: '/shelf/{id}/' } });
    expect(() => overviewsIn(table, [one])).toThrow('gives `listBooks` no id');
  });
});

test('an overview without an id and a summary has those of its path', () => {
  const { id, summary } = made('/bff/v1/book-overview/:id/of-mine', { one: { read: rows.getBook, id: fromPath } });
  expect({ id, summary }).toEqual({ id: 'getBookOverviewOfMine', summary: 'Book overview of mine' });
});
