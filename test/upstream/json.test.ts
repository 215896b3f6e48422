import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cut, extentOf, itemsOf, memberOf, membersOf, stringAt } from '../../src/core/json.ts';
import { localLinks, withOrigin } from '../../src/upstream/links.ts';

/** A value and one of the many texts of it: spaces anywhere, any character escaped, any sign of a number. */
interface Written {
  readonly value: unknown;
  readonly text: string;
}

const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\r', '\t'), maxLength: 2 });

const isPlain = (character: string) => character >= ' ' && character !== '"' && character !== '\\';

const SHORT: Readonly<Record<string, string>> = { '"': '\\"', '\\': '\\\\', '\n': '\\n', '\t': '\\t', '/': '\\/' };

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

const unit = fc.oneof(
  fc.constantFrom(...String.raw`"\/{}[],: ntub0`.split(''), '\n', '\t', '\u0000', 'é', '\ud83d', '\ude00', '\u2028'),
  fc.string({ minLength: 1, maxLength: 1 }).filter((character) => character.length === 1),
);

const writtenString: fc.Arbitrary<Written & { readonly value: string }> = fc
  .array(fc.tuple(unit, fc.nat(2)), { maxLength: 8 })
  .map((characters) => {
    const parts = characters.map(([character, way]) => {
      if (way === 0 && isPlain(character)) return character;
      return way === 1 ? (SHORT[character] ?? escaped(character)) : escaped(character);
    });
    return { value: characters.map(([character]) => character).join(''), text: `"${parts.join('')}"` };
  });

/** None of one character that is written as an escape: V8 takes it for another such name that it has seen there before. */
const writtenName = writtenString.filter(({ value, text }) => value.length !== 1 || !text.includes('\\'));

const SCALARS = ['25.0', '-0', '1e5', '1E-7', '9007199254740993123', '0.20', 'true', 'false', 'null'];

const scalar: fc.Arbitrary<Written> = fc.oneof(
  writtenString,
  fc.constantFrom(...SCALARS).map((text) => ({ text, value: JSON.parse(text) as unknown })),
);

/** Between brackets, with spaces wherever they may be. */
const joined = (open: string, close: string, parts: readonly string[], pad: string) =>
  `${open}${pad}${parts.join(`${pad},${pad}`)}${pad}${close}`;

const { written } = fc.letrec<{ written: Written }>((tie) => ({
  written: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.tuple(fc.array(tie('written'), { maxLength: 4 }), space).map(([items, pad]) => ({
      value: items.map(({ value }) => value),
      text: joined(
        '[',
        ']',
        items.map(({ text }) => text),
        pad,
      ),
    })),
    fc.tuple(fc.array(fc.tuple(writtenName, tie('written')), { maxLength: 4 }), space).map(([members, pad]) => ({
      value: undefined,
      text: joined(
        '{',
        '}',
        members.map(([name, { text }]) => `${name.text}${pad}:${pad}${text}`),
        pad,
      ),
    })),
  ),
}));

/** Texts with spaces round them; what they mean is what `JSON.parse` says. */
const texts = fc.tuple(space, written, space).map(([before, { text }, after]) => before + text + after);

const depthOf = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Object.values(value).reduce<number>((most, inner: unknown) => Math.max(most, depthOf(inner)), 0);
};

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const RUNS = { numRuns: 500 };

describe('the spans of JSON text', () => {
  test('of members are what JSON.parse finds', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const value: unknown = JSON.parse(text);
        const members = [...membersOf(text)];
        // Assigning would fall for a member called `__proto__`.
        const found = Object.fromEntries(
          members.map(({ name, ...span }) => [name, JSON.parse(cut(text, span)) as unknown]),
        );
        expect(found).toEqual(isObject(value) ? value : {});
        if (!isObject(value)) return;
        for (const name of Object.keys(value)) {
          const span = memberOf(text, name);
          expect(span && (JSON.parse(cut(text, span)) as unknown)).toEqual(
            Object.getOwnPropertyDescriptor(value, name)?.value,
          );
        }
        expect(memberOf(text, 'not a name in there')).toBeUndefined();
      }),
      RUNS,
    );
  });

  test('of items are what JSON.parse finds', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const value: unknown = JSON.parse(text);
        const items = Array.from(itemsOf(text), (span) => JSON.parse(cut(text, span)) as unknown);
        expect(items).toEqual(Array.isArray(value) ? value : []);
      }),
      RUNS,
    );
  });

  test('have no space at either end', () => {
    fc.assert(
      fc.property(texts, (text) => {
        for (const span of [...membersOf(text), ...itemsOf(text)]) expect(cut(text, span)).toBe(cut(text, span).trim());
      }),
      RUNS,
    );
  });

  test('are found wherever in a text one begins', () => {
    fc.assert(
      fc.property(texts, texts, (before, text) => {
        const all = `[${before},${text}]`;
        const at = before.length + 2;
        const moved = (spans: Iterable<{ start: number; end: number }>) => Array.from(spans, (span) => cut(all, span));
        expect(moved(membersOf(all, at))).toEqual(Array.from(membersOf(text), (span) => cut(text, span)));
        expect(moved(itemsOf(all, at))).toEqual(Array.from(itemsOf(text), (span) => cut(text, span)));
      }),
      RUNS,
    );
  });
});

test('a string stands for what JSON.parse says', () => {
  fc.assert(
    fc.property(writtenString, ({ text, value }) => {
      expect(stringAt(text, { start: 0, end: text.length })).toBe(value);
    }),
    RUNS,
  );
});

test('the depth of a text is that of its value', () => {
  fc.assert(
    fc.property(texts, fc.nat(6), (text, limit) => {
      // JSON.parse drops all but the last member of a name.
      fc.pre(!hasDuplicateNames(text));
      expect(extentOf(text).depth > limit).toBe(depthOf(JSON.parse(text)) > limit);
    }),
    RUNS,
  );
});

const hasDuplicateNames = (text: string): boolean => {
  const members = [...membersOf(text)];
  const inside = [...members, ...itemsOf(text)];
  return (
    new Set(members.map(({ name }) => name)).size < members.length ||
    inside.some((span) => hasDuplicateNames(cut(text, span)))
  );
};

test('the depth of a text of a hundred thousand levels is found', () => {
  expect(extentOf('['.repeat(100_000))).toEqual({ depth: 100_000, values: 100_000 });
  expect(extentOf(`{"a":"${'['.repeat(100_000)}"}`)).toEqual({ depth: 1, values: 1 });
});

describe('links of a page', () => {
  const PAGE = { upstream: new URL('https://upstream.example/base'), path: '/api/v2/x/' };
  const ORIGIN = 'https://gateway.example';

  const link = fc.oneof(
    fc.constant(null),
    fc.webUrl({ withQueryParameters: true, withFragments: false }),
    fc.webQueryParameters().map((query) => `https://upstream.example/base/api/v2/x/?${query}`),
  );

  /** A page with members of any kind round its links, and none of its own called like one. */
  const pages = fc.record({
    before: fc.array(fc.tuple(writtenString, written), { maxLength: 3 }),
    next: link,
    previous: fc.option(link, { nil: undefined }),
    after: fc.array(fc.tuple(writtenString, written), { maxLength: 3 }),
    pad: space,
  });

  test('are all that changes in its text', () => {
    fc.assert(
      fc.property(pages, ({ before, next, previous, after, pad }) => {
        const others = [...before, ...after].map(([name]) => name.value);
        fc.pre(!others.includes('next') && !others.includes('previous'));
        const member = ([name, { text }]: (typeof before)[number]) => `${name.text}${pad}:${text}`;
        const page = (one: unknown, two: unknown) =>
          joined(
            '{',
            '}',
            [
              ...before.map(member),
              `"next":${JSON.stringify(one)}`,
              ...(previous === undefined ? [] : [`"previous" :${JSON.stringify(two)}`]),
              ...after.map(member),
            ],
            pad,
          );
        const here = (from: string | null | undefined) => {
          if (typeof from !== 'string') return from;
          const { pathname, search } = new URL(from);
          const local = pathname.replace(/^\/base(?=\/)/, '');
          return ORIGIN + (local === '/' ? PAGE.path : local) + search;
        };
        const local = localLinks(page(next, previous), PAGE);
        expect(withOrigin(local, { origin: ORIGIN })).toBe(page(here(next), here(previous)));
        expect(local.text).not.toContain('upstream.example');
      }),
      RUNS,
    );
  });

  test('ask once for the origin, and only where they are some', () => {
    let times = 0;
    const request = {
      get origin() {
        times++;
        return ORIGIN;
      },
    };
    withOrigin(localLinks('{"next":"/a/?page=3","previous":"/a/?page=1"}', PAGE), request);
    expect(times).toBe(1);
    withOrigin(localLinks('{"next":null,"previous":null}', PAGE), request);
    expect(times).toBe(1);
  });

  test('of what is no page are none', () => {
    fc.assert(
      fc.property(texts, (text) => {
        fc.pre(!/next|previous|\\u/.test(text));
        expect(localLinks(text, PAGE)).toEqual({ text, links: [] });
      }),
      RUNS,
    );
  });
});

test('a member is found in a wide object in one pass', () => {
  const members = Array.from({ length: 200_000 }, (_, n) => `"member_${n}":${n}`);
  const text = `{${members.join(',')},"wanted":1}`;
  const begunAt = performance.now();
  expect(memberOf(text, 'wanted')).toEqual({ start: text.length - 2, end: text.length - 1 });
  expect(performance.now() - begunAt).toBeLessThan(5_000); // a second pass for each member would take minutes
});
