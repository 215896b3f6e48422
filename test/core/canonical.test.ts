import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonical } from '../../src/core/canonical.ts';

/** A JSON value whose numbers are as they are written. */
type Tree =
  | { readonly scalar: string }
  | { readonly string: string }
  | { readonly items: readonly Tree[] }
  | { readonly members: readonly (readonly [name: string, value: Tree])[] };

/** Few and alike, so that equal ones and nearly equal ones come up. */
const SCALARS = ['null', 'true', 'false', '0', '-0', '0.0', '1', '1.0', '1e0', '1E0', '1e+0', '10', '25', '25.0'];
const BIG = ['9007199254740992', '9007199254740993', '9007199254740993123', '1e400', '-1e400'];
const STRINGS = ['', 'a', 'A', 'b', ' ', '"', '\\', '\\"', '/', '1', 'null', '\n', '\u0000', '\u007f', '\u2028', '{}'];
const ODD = [
  '__proto__',
  'constructor',
  'toString',
  'é',
  'e\u0301',
  '😀',
  '\ud83d',
  '\ude00',
  'я',
  ',',
  ':',
  '","',
  '},{',
];

const text = fc.oneof(fc.constantFrom(...STRINGS, ...ODD), fc.string({ unit: 'binary', maxLength: 5 }));
const scalar = fc.constantFrom(...SCALARS, ...BIG).map((written): Tree => ({ scalar: written }));

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    scalar,
    text.map((string): Tree => ({ string })),
    fc.array(tie('tree'), { maxLength: 3 }).map((items): Tree => ({ items })),
    fc
      .uniqueArray(fc.tuple(text, tie('tree')), { maxLength: 4, selector: ([name]) => name })
      .map((members): Tree => ({ members })),
  ),
}));

/** Each print takes its choices from here, over and over. */
const choices = fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 30 });

const SPACES = ['', '', ' ', '\n', '\t', '\r\n  '];

/** One of the many texts of a value. */
class Printer {
  readonly #choices: readonly number[];
  #taken = 0;

  constructor(chosen: readonly number[]) {
    this.#choices = chosen;
  }

  print(value: Tree): string {
    return this.#space() + this.#bare(value) + this.#space();
  }

  #bare(value: Tree): string {
    if ('scalar' in value) return value.scalar;
    if ('string' in value) return this.#string(value.string);
    if ('items' in value) return `[${value.items.map((item) => this.print(item)).join(',') || this.#space()}]`;
    const members = this.#shuffled(value.members).map(
      ([name, member]) => `${this.#space()}${this.#string(name)}${this.#space()}:${this.print(member)}`,
    );
    return `{${members.join(',') || this.#space()}}`;
  }

  #string(characters: string): string {
    const units = Array.from({ length: characters.length }, (_, at) => this.#unit(characters.charCodeAt(at)));
    return `"${units.join('')}"`;
  }

  #unit(code: number): string {
    const char = String.fromCharCode(code);
    const hex = code.toString(16).padStart(4, '0');
    const short = char === '/' ? String.raw`\/` : JSON.stringify(char).slice(1, -1);
    const isPlain = code >= 0x20 && char !== '"' && char !== '\\';
    return this.#pick([isPlain ? char : short, short, `\\u${hex}`, `\\u${hex.toUpperCase()}`]);
  }

  #shuffled<T>(list: readonly T[]): T[] {
    const keyed = list.map((one) => [this.#next(), one] as const);
    return keyed.toSorted(([one], [other]) => one - other).map(([, one]) => one);
  }

  #space(): string {
    return this.#pick(SPACES);
  }

  #pick(list: readonly string[]): string {
    return list[this.#next() % list.length] ?? '';
  }

  #next(): number {
    return this.#choices[this.#taken++ % this.#choices.length] ?? 0;
  }
}

const printed = (value: Tree, chosen: readonly number[]) => new Printer(chosen).print(value);

/** What a value means, said in another way than the code under test does. */
const meaning = (value: Tree): string => {
  if ('scalar' in value) return `#${value.scalar}`;
  if ('string' in value) return unitsOf(value.string);
  if ('items' in value) return `(${value.items.map(meaning).join(' ')})`;
  const members = value.members.map(([name, member]) => `${unitsOf(name)}=${meaning(member)}`);
  return `<${members.toSorted().join(' ')}>`;
};

const unitsOf = (characters: string) =>
  `'${Array.from({ length: characters.length }, (_, at) => characters.charCodeAt(at)).join('.')}'`;

const runs = { numRuns: 1500 };

test('all prints of a value have one canonical text', () => {
  fc.assert(
    fc.property(tree, choices, choices, (value, one, other) => {
      expect(canonical(printed(value, one))).toBe(canonical(printed(value, other)));
    }),
    runs,
  );
});

test('two values have one canonical text only if they are the same', () => {
  fc.assert(
    fc.property(tree, tree, choices, choices, (one, other, chosen, chosenToo) => {
      const isSame = canonical(printed(one, chosen)) === canonical(printed(other, chosenToo));
      expect(isSame).toBe(meaning(one) === meaning(other));
    }),
    { numRuns: 4000 },
  );
});

/** The value with one part of it in the place of another, or one less: as near as another value can be. */
const neighbours = (value: Tree): Tree[] => {
  if ('items' in value) {
    const { items } = value;
    const swapped: Tree = { items: items.toReversed() };
    const shorter: Tree = { items: items.slice(1) };
    return [swapped, shorter, { items: [value] }, ...inEach(items, neighbours, (changed) => ({ items: changed }))];
  }
  if ('members' in value) {
    const { members } = value;
    const renamed = members.map(([name, member]) => [`${name} `, member] as const);
    const inside = inEach(
      members,
      ([name, member]) => neighbours(member).map((changed) => [name, changed] as const),
      (changed) => ({ members: changed }),
    );
    return [{ members: members.slice(1) }, { members: renamed }, { items: [value] }, ...inside];
  }
  const characters = 'string' in value ? value.string : value.scalar;
  return [{ string: `${characters} ` }, { string: `"${characters}"` }, { items: [value] }, { scalar: '7' }];
};

const inEach = <T>(list: readonly T[], changes: (one: T) => readonly T[], build: (changed: T[]) => Tree): Tree[] =>
  list.flatMap((one, at) => changes(one).map((changed) => build(list.toSpliced(at, 1, changed))));

test('a value that differs in the least thing has another canonical text', () => {
  fc.assert(
    fc.property(tree, choices, (value, chosen) => {
      const own = canonical(printed(value, chosen));
      for (const other of neighbours(value)) {
        if (meaning(other) !== meaning(value)) expect(canonical(printed(other, chosen))).not.toBe(own);
      }
    }),
    runs,
  );
});

/** As long as any text of the value without needless space and escapes. */
const shortest = (value: Tree): number => {
  if ('scalar' in value) return value.scalar.length;
  if ('string' in value) return JSON.stringify(value.string).length;
  const parts =
    'items' in value
      ? value.items.map(shortest)
      : value.members.map(([name, member]) => JSON.stringify(name).length + 1 + shortest(member));
  return parts.reduce((sum, part) => sum + part, 2 + Math.max(0, parts.length - 1));
};

test('a canonical text is JSON, with nothing needless in it, and its own canonical text', () => {
  fc.assert(
    fc.property(tree, choices, (value, chosen) => {
      const own = canonical(printed(value, chosen));
      expect(() => JSON.parse(own) as unknown).not.toThrow();
      expect(own).toHaveLength(shortest(value));
      expect(canonical(own)).toBe(own);
    }),
    runs,
  );
});

test('names are read right also where V8 takes an escape for the name that it has seen there before', () => {
  JSON.parse(String.raw`{"q":null,"\\":""}`);
  expect(canonical(String.raw`{"q":null,"\u0041":""}`)).toBe('{"A":"","q":null}');
});

describe('canonical texts', () => {
  test.each([
    ['{"b":1,"a":2}', '{"a":2,"b":1}'],
    [' [ 1 , 2 ,{ } ] ', '[1,2,{}]'],
    [String.raw`"\u0061\/"`, '"a/"'],
    ['"\u2028"', '"\u2028"'],
    [String.raw`{"__proto__":{"b":1,"a":2},"\u005f_proto__x":1}`, '{"__proto__":{"a":2,"b":1},"__proto__x":1}'],
    ['{"price":25.0,"id":9007199254740993123}', '{"id":9007199254740993123,"price":25.0}'],
    ['{"constructor":{"prototype":1}}', '{"constructor":{"prototype":1}}'],
    ['', ''],
  ])('of %s is %s', (given, expected) => {
    expect(canonical(given)).toBe(expected);
  });

  test.each([
    ['25', '25.0'],
    ['25', '2.5e1'],
    ['1E2', '1e2'],
    ['0', '-0'],
    ['9007199254740992', '9007199254740993'],
    ['1', '"1"'],
    ['null', '"null"'],
    ['{}', '[]'],
    ['', '{}'],
    ['"é"', '"e\u0301"'],
    ['{"a":{"b":1}}', '{"a":1,"b":1}'],
    ['{"a":"1,\\"b\\":2"}', '{"a":"1","b":"2"}'],
    ['{"__proto__":1}', '{}'],
    ['[[1],2]', '[1,[2]]'],
  ])('of %s and %s differ', (one, other) => {
    expect(canonical(one)).not.toBe(canonical(other));
  });

  test('of the largest bodies come soon enough', () => {
    const deep = `${'{"a":['.repeat(32)}${'1,'.repeat(30_000)}1${']}'.repeat(32)}`;
    const wide = `{${Array.from({ length: 8000 }, (_, at) => `"${8000 - at}":1`).join(',')}}`;
    const escaped = `"${'\\\\\\"'.repeat(16_000)}"`;
    for (const body of [deep, wide, escaped]) {
      const begunAt = performance.now();
      canonical(body);
      expect(performance.now() - begunAt).toBeLessThan(1000);
    }
  });
});

test.each([
  ['{"b":1,"a":1,"\\u0061":2}', '{"a":2,"b":1}'],
  ['{"a":2,"b":1,"a":1}', '{"a":1,"b":1}'],
])('of a name that stands twice the last counts, as for JSON.parse: %s', (json, expected) => {
  expect(canonical(json)).toBe(expected);
});
