import { defineRows, from, fromPath, overview } from '../../src/index.ts';
import type { Same } from '../support/same.ts';
import { rows } from './own.ts';

// What the types of overviews say. Compiled by `npm run check`, never run.

const same = <A, B>(isSame: Same<A, B>): void => void isSame;

export const ofBook = overview(
  '/bff/v1/book-overview/:id',
  {
    book: { read: rows.getBook, id: fromPath, required: true },
    books: { read: rows.listBooks, query: { page_size: 5, like: fromPath } },
    author: { read: rows.getAuthor, id: from('book', 'author', rows.listAuthors), required: true },
  },
  ({ book, books, author }) => {
    same<typeof book.price, number>(true);
    same<typeof book.author, string | null>(true);
    // @ts-expect-error it may have failed
    void books.count;
    same<NonNullable<typeof books>['results'][number]['price'], number>(true);
    // @ts-expect-error the book may name none
    void author.name;
    return { price: book.price, of: author?.name ?? null, all: books?.count };
  },
  { id: 'getBookOverview', summary: 'A book', computed: rows.getBook.answer },
);

overview(
  '/bff/v1/wrong-inputs',
  { books: { read: rows.listBooks } },
  // @ts-expect-error there is no such section
  ({ shelves }) => shelves !== null,
);

overview(
  '/bff/v1/wrong-result',
  { books: { read: rows.listBooks } },
  // @ts-expect-error nobody waits for a promise
  async ({ books }) => books,
);

overview('/bff/v1/wrong-name', {
  book: { read: rows.getBook, id: '7' },
  // @ts-expect-error there is no such section
  author: { read: rows.getAuthor, id: from('shelf', 'author') },
});

overview('/bff/v1/itself', {
  // @ts-expect-error a section does not depend on itself
  author: { read: rows.getAuthor, id: from('author', 'id') },
});

overview('/bff/v1/wrong-section', {
  // @ts-expect-error it may be left out, but not be false
  book: { read: rows.getBook, id: '7', required: false },
});

overview('/bff/v1/wrong-member', {
  // @ts-expect-error no section has this
  books: { read: rows.listBooks, requird: true },
});

defineRows({
  ...rows,
  // @ts-expect-error no row has this
  listShelves: { at: 'GET /shelf/', answer: null, chache: rows.listBooks.cache },
});

// @ts-expect-error not below /bff/v1
overview('/elsewhere', { books: { read: rows.listBooks } });
