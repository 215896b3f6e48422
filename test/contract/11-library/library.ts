import { Hono } from 'hono';
import {
  booleanText,
  defineRows,
  flag,
  type HostEnv,
  identifier,
  model,
  overview,
  pageOf,
  paging,
  portico,
  type PorticoOptions,
  resource,
  text,
} from '../../../src/index.ts';
import { overviews, proxyAccount } from '../../../src/proxy-account/index.ts';
import { tableOf } from '../../../src/upstream/table.ts';
import { orgs, rows as orgRows } from './orgs.ts';

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
    params: { id: 'slug' },
    answer: book,
    group: 'book',
    cache: { fresh: 60, stale: 0, onError: 600 },
    refusals: { lost: { status: 404, title: 'The book is lost', description: 'Nobody has seen it since the flood.' } },
    tag: BOOKS,
  },
  lendBook: {
    at: 'POST /v1/books/{id}/loans/',
    params: { id: 'slug' },
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

const shelf = overview(
  '/bff/v1/shelf',
  { books: { read: rows.listBooks, required: true }, of_the_month: { read: rows.getBook, params: { id: ODYSSEY } } },
  ({ books, of_the_month: one }) => ({
    lent: books.results.filter(({ on_loan }) => on_loan).length,
    is_there: one && !one.on_loan,
  }),
  { summary: 'All books, and the one of this month' },
);

export const library = { table: tableOf(rows), overviews: [shelf] };

/** A host of both gateways, with a middleware before everything and handlers of its own. */
export function hostOf({ runtime }: Pick<PorticoOptions, 'runtime'>) {
  const account = portico({
    runtime,
    rows: proxyAccount,
    overviews,
    headers: async ({ operation, credential }) =>
      credential?.startsWith('broken')
        ? Promise.reject(new Error('hunter2'))
        : { 'X-Key': credential, 'X-Operation': operation.id },
    onProblem: (problem, { operation = 'none' }) => ({ ...problem, title: 'Oh', status: 200, operation }),
  });
  const books = portico({ runtime, rows, overviews: [shelf] });
  const others = portico({ runtime, rows: orgRows, overviews: orgs.overviews, mcp: true });
  const app = new Hono<HostEnv>()
    .use(async (c, next) => {
      await next();
      c.header('X-Host', 'the host');
    })
    .use((c, next) => (c.req.header('x-busy') === undefined ? next() : Promise.resolve(c.text('busy', 503))))
    .get('/own/plan', account.request, async (c) => {
      const { plan } = (await c.var.portico.read(proxyAccount.getSubscription)).json();
      return c.json({ plan });
    })
    .put('/own/members/:id', others.request, async (c) => {
      const params = { org: 'acme', id: c.req.param('id') };
      return c.json((await c.var.portico.write(orgRows.putMember, { params, body: { name: 'new' } })).json());
    })
    .get('/own/:name', (c) => c.text(c.req.param('name')))
    .route('/host', account.app)
    .route('/books', books.app)
    .route('/at/:org', others.app)
    .notFound((c) => c.text('not here', 404));
  return { app, drain: () => Promise.all([account.drain(), books.drain(), others.drain()]) };
}
