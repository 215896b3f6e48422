import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonical } from '../../src/core/canonical.ts';
import { cut, extentOf, isTooDeep, itemsOf, memberOf, membersOf, stringAt } from '../../src/core/json.ts';
import { seed, times } from '../support/times.ts';

/** A JSON value whose numbers are as they are written, and whose members have names that all differ. */
type Tree =
  | { readonly scalar: string }
  | { readonly string: string }
  | { readonly items: readonly Tree[] }
  | { readonly members: readonly (readonly [name: string, value: Tree])[] };

/** Few and alike, so that equal ones and nearly equal ones come up. */
const SCALARS =
  'null true false 0 -0 0.0 1 1.0 1e0 1E0 1e+0 10 25 25.0 9007199254740992 9007199254740993 9007199254740993123 1e400';
const STRINGS = ['', 'a', 'A', 'b', ' ', '"', '\\', '\\"', '/', '1', 'null', '\n', '\u0000', '\u007f', '\u2028', '{}'];
const ODD = ['__proto__', 'constructor', 'é', 'e\u0301', '😀', '\ud83d', '\ude00', ',', ':', '","', '},{', '[]'];

const strings = fc.oneof(fc.constantFrom(...STRINGS, ...ODD), fc.string({ unit: 'binary', maxLength: 5 }));

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constantFrom(...SCALARS.split(' ')).map((scalar): Tree => ({ scalar })),
    strings.map((string): Tree => ({ string })),
    fc.array(tie('tree'), { maxLength: 3 }).map((items): Tree => ({ items })),
    fc
      .uniqueArray(fc.tuple(strings, tie('tree')), { maxLength: 4, selector: ([name]) => name })
      .map((members): Tree => ({ members })),
  ),
}));

/** Where a print begins to choose. */
const choices = fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 30 });

const runs = (count: number) => ({ numRuns: times(count), seed: seed() });

const SPACES = ['', '', ' ', '\n', '\t', '\r\n  '];

/** One of the many texts of a value: space anywhere, members in any order, any character escaped. */
function printed(value: Tree, chosen: readonly number[]): string {
  let taken = 0;
  const next = () => chosen[taken++ % chosen.length]!;
  const pick = (list: readonly string[]) => list[next() % list.length]!;
  const space = () => pick(SPACES);
  const unit = (code: number) => {
    const char = String.fromCharCode(code);
    const short = char === '/' ? String.raw`\/` : JSON.stringify(char).slice(1, -1);
    const hex = code.toString(16).padStart(4, '0');
    const isPlain = code >= 0x20 && char !== '"' && char !== '\\';
    return pick([isPlain ? char : short, short, `\\u${hex}`, `\\u${hex.toUpperCase()}`]);
  };
  const text = (string: string) =>
    `"${Array.from({ length: string.length }, (_, at) => unit(string.charCodeAt(at))).join('')}"`;
  const bare = (one: Tree): string => {
    if ('scalar' in one) return one.scalar;
    if ('string' in one) return text(one.string);
    if ('items' in one) return `[${one.items.map(spaced).join(',') || space()}]`;
    const keyed = one.members.map((member) => [next(), member] as const).toSorted(([a], [b]) => a - b);
    const all = keyed.map(([, [name, member]]) => `${space()}${text(name)}${space()}:${spaced(member)}`);
    return `{${all.join(',') || space()}}`;
  };
  const spaced = (one: Tree): string => space() + bare(one) + space();
  return spaced(value);
}

/** What a value means, said in another way than the code under test does: texts with one meaning are equal. */
function meaningOf(value: Tree): string {
  if ('scalar' in value) return `#${value.scalar}`;
  if ('string' in value) return unitsOf(value.string);
  if ('items' in value) return `(${value.items.map(meaningOf).join(' ')})`;
  const members = value.members.map(([name, member]) => `${unitsOf(name)}=${meaningOf(member)}`);
  return `<${members.toSorted().join(' ')}>`;
}

const unitsOf = (string: string) =>
  `'${Array.from({ length: string.length }, (_, at) => string.charCodeAt(at)).join('.')}'`;

/** The value with one part of it in the place of another, or one less: as near as another value can be. */
function neighboursOf(value: Tree): Tree[] {
  const around: Tree[] = [{ items: [value] }, { scalar: '7' }];
  if ('scalar' in value || 'string' in value) {
    const characters = 'string' in value ? value.string : value.scalar;
    return [...around, { string: `${characters} ` }, { string: `"${characters}"` }];
  }
  if ('items' in value) {
    const { items } = value;
    const inside = items.flatMap((item, at) =>
      neighboursOf(item).map((one) => ({ items: items.toSpliced(at, 1, one) })),
    );
    return [...around, ...inside, { items: items.toReversed() }, { items: items.slice(1) }];
  }
  const { members } = value;
  const inside = members.flatMap(([name, member], at) =>
    neighboursOf(member).map((one) => ({ members: members.toSpliced(at, 1, [name, one]) })),
  );
  const renamed = members.map(([name, member]) => [`${name} `, member] as const);
  return [...around, ...inside, { members: members.slice(1) }, { members: renamed }];
}

test('all texts of a value have one canonical text, which is JSON and its own', () => {
  fc.assert(
    fc.property(tree, choices, choices, (value, one, other) => {
      const own = canonical(printed(value, one));
      expect(canonical(printed(value, other))).toBe(own);
      expect(canonical(own)).toBe(own);
      expect(() => JSON.parse(own) as unknown).not.toThrow();
    }),
    runs(300),
  );
});

test('two values have one canonical text only if they are the same, and not if they differ in the least thing', () => {
  fc.assert(
    fc.property(tree, tree, choices, (one, other, chosen) => {
      const own = canonical(printed(one, chosen));
      for (const near of [other, ...neighboursOf(one)])
        expect(canonical(printed(near, chosen)) === own).toBe(meaningOf(near) === meaningOf(one));
    }),
    runs(300),
  );
});

test('names are read right also where V8 takes an escape for the name that it has seen there before', () => {
  JSON.parse(String.raw`{"q":null,"\\":""}`);
  expect(canonical(String.raw`{"q":null,"\u0041":""}`)).toBe('{"A":"","q":null}');
});

test('of two members with one name the last counts, no text is one of its own, and some members are not compared', () => {
  expect(canonical(String.raw`{"b":1,"a":1,"\u0061":2}`)).toBe('{"a":2,"b":1}');
  expect(['', '{}'].map((text) => canonical(text))).toEqual(['', '{}']);
  expect(canonical(String.raw`{"b":1,"r\u0065":2,"c":{"re":3}}`, new Set(['re']))).toBe('{"b":1,"c":{"re":3}}');
});

const depthOf = (value: Tree): number => {
  if ('scalar' in value || 'string' in value) return 0;
  const inner = 'items' in value ? value.items : value.members.map(([, member]) => member);
  return 1 + Math.max(0, ...inner.map(depthOf));
};

const plain = (value: Tree) => canonical(printed(value, [0]));

/** A text with something before it, as it stands in a longer one. */
const within = fc.tuple(tree, choices, fc.constantFrom('', '["x",', '{"a":{},"b":'));

test('members and items are found by their place, wherever in a text one begins, with no space at either end', () => {
  fc.assert(
    fc.property(within, ([value, chosen, before]) => {
      const text = before + printed(value, chosen);
      const textAt = (span: { start: number; end: number }) => {
        expect(cut(text, span)).toBe(cut(text, span).trim());
        return canonical(cut(text, span));
      };
      const members = new Map(membersOf(text, before.length).map(({ name, ...span }) => [name, textAt(span)]));
      const items = itemsOf(text, before.length).map(textAt);
      expect(members).toEqual(
        new Map('members' in value ? value.members.map(([name, one]) => [name, plain(one)]) : []),
      );
      expect(items).toEqual('items' in value ? value.items.map(plain) : []);
    }),
    runs(300),
  );
});

test('a member is found by its name, however that is written, and none of another', () => {
  fc.assert(
    fc.property(tree, choices, strings, (value, chosen, name) => {
      const text = printed(value, chosen);
      const expected = 'members' in value ? value.members.find(([one]) => one === name)?.[1] : undefined;
      const span = memberOf(text, name);
      expect(span && canonical(cut(text, span))).toBe(expected && plain(expected));
    }),
    runs(300),
  );
});

test('a string stands for its characters, and the depth of a text is that of its value', () => {
  fc.assert(
    fc.property(tree, choices, strings, (value, chosen, string) => {
      expect(stringAt(printed({ string }, chosen).trim())).toBe(string);
      expect(extentOf(printed(value, chosen)).depth).toBe(depthOf(value));
    }),
    runs(300),
  );
});

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

test('64 levels are as deep as a text may be; a hundred thousand are counted', () => {
  expect([64, 65].map((levels) => isTooDeep(nested(levels)))).toEqual([false, true]);
  expect(extentOf('['.repeat(100_000))).toEqual({ depth: 100_000, values: 100_000 });
  expect(extentOf(`{"a":"${'['.repeat(100_000)}"}`)).toEqual({ depth: 1, values: 1 });
});

test('a member is found in a wide object in one pass: a second for each member would take minutes', () => {
  const text = `{${Array.from({ length: 200_000 }, (_, n) => `"member_${n}":${n}`).join(',')},"wanted":1}`;
  expect(memberOf(text, 'wanted')).toEqual({ start: text.length - 2, end: text.length - 1 });
});
