import { overview } from '../../src/gateway/overviews.ts';
import { flag, identifier, model, pageOf, resource, text } from '../../src/upstream/fields.ts';
import { defineRows } from '../../src/upstream/operation.ts';
import { booleanText, paging } from '../../src/upstream/parameters.ts';
import { tableOf } from '../../src/upstream/table.ts';

/** Another upstream than ours: a library of books. */

const book = resource('Book', {
  isbn: text('its number', '978-0-14-044913-6'),
  title: text('what it is called', 'The Odyssey'),
  on_loan: flag('whether somebody has it', false),
});
const loan = resource('Loan', {
  id: identifier('its number', 7),
  isbn: text('the book', '978-0-14-044913-6'),
  weeks: identifier('for how long', 3),
});
const reader = { reader: text('who reads', 'penelope'), password: text('known to the reader alone', '<PASSWORD>') };

const BOOKS = { name: 'Books', description: 'What is on the shelves.' };
const READERS = { name: 'Readers', description: 'Who reads.' };

export const rows = defineRows({
  listBooks: {
    at: 'GET /v1/books',
    query: { ...paging, on_loan: booleanText('whether somebody has it') },
    ...pageOf(book),
    group: 'books',
    cache: { fresh: 30, stale: 60, onError: 600 },
    tag: BOOKS,
    summary: 'All books',
  },
  getBook: {
    at: 'GET /v1/books/{id}',
    idForm: 'slug',
    answer: book,
    group: 'book',
    cache: { fresh: 60, stale: 0, onError: 600 },
    refusals: { lost: { status: 404, title: 'The book is lost', description: 'Nobody has seen it since the flood.' } },
    tag: BOOKS,
  },
  lendBook: {
    at: 'POST /v1/books/{id}/loans/',
    idForm: 'slug',
    body: { schema: model('NewLoan', { weeks: identifier('for how long', 3) }) },
    answer: loan,
    invalidates: ['books', { item: 'book' }],
    refusals: { on_loan: { status: 409, description: 'Somebody else has it.' } },
    tag: BOOKS,
  },
  enter: {
    at: 'POST /v1/login',
    credential: 'none',
    body: { schema: model('Reader', reader) },
    answer: resource('Entrance', { access_token: text('the key', '<TOKEN>') }),
    secrets: ['access_token', 'password'],
    signsIn: { as: 'enter', token: 'access_token' },
    tag: READERS,
  },
});

export const ODYSSEY = '978-0-14-044913-6';
export const ILIAD = '978-0-14-044794-1';

export const shelf = overview(
  '/bff/v1/shelf',
  { books: { read: rows.listBooks, required: true }, of_the_month: { read: rows.getBook, id: ODYSSEY } },
  ({ books, of_the_month: one }) => ({
    lent: books.results.filter(({ on_loan }) => on_loan).length,
    is_there: one && !one.on_loan,
  }),
  { summary: 'All books, and the one of this month' },
);

export const library = { table: tableOf(rows), overviews: [shelf] };
