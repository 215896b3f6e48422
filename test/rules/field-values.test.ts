import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dateOf, directivesOf, elementsOf, secondsOf } from '../../src/core/field-values.ts';

const NOW = Date.UTC(2026, 5, 9);
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** The forms of RFC 9110, section 5.6.7, of which the second has two digits of the year. */
function formsOf(at: Date): readonly string[] {
  const imf = at.toUTCString();
  const [, day = '', month = '', year = '', time = ''] = imf.split(' ');
  const name = DAYS[at.getUTCDay()] ?? '';
  return [
    imf,
    `${name}, ${day}-${month}-${year.slice(2)} ${time} GMT`,
    `${name.slice(0, 3)} ${month} ${day.replace(/^0/, ' ')} ${time} ${year}`,
  ];
}

const seconds = fc.integer({ min: Date.UTC(1977) / 1000, max: Date.UTC(2076) / 1000 });

const NO_DATES =
  '0 | now | 2026-06-09T12:00:00Z | 1781006400 | Tue, 09 Jun 2026 12:00:00 | Tue, 09 Jun 2026 12:00:00 PST | ' +
  'Tue, 31 Jun 2026 12:00:00 GMT | Tue, 09 Jum 2026 12:00:00 GMT | Tue, 09 Jun 2026 24:00:00 GMT | | ' +
  'Tue, 09 Jun 2026 12:60:00 GMT | Tue, 9 Jun 2026 12:00:00 GMT | Tue, 09 Jun 2026 12:00:00 GMT+1 | ' +
  'Tue Jun 9 2026 | Tuesday, 09-Jun-2026 12:00:00 GMT';

describe('RFC 9110, section 5.6.7: a date', () => {
  test('of each form is what it says, in upper and lower case, and once where it came twice', () => {
    fc.assert(
      fc.property(seconds, (second) => {
        for (const text of formsOf(new Date(second * 1000)))
          for (const said of [text, text.toLowerCase(), text.toUpperCase(), `${text} , ${text}`])
            expect([said, dateOf(said, NOW)]).toEqual([said, second * 1000]);
      }),
    );
  });

  test.each(NO_DATES.split(' | '))('is not %j', (text) => {
    expect(dateOf(text, NOW)).toBeUndefined();
  });
});

const token = fc.stringMatching(/^[a-z][a-z0-9-]{0,9}$/);
const blank = fc.stringMatching(/^[ \t]{0,2}$/);
const inner = fc.stringMatching(/^[\x20-\x7e]{0,12}$/);
const quoted = (text: string) => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;

test('RFC 9110, sections 5.6.1 and 5.6.4: a list has its elements back, whatever stands in quotes and whatever is empty', () => {
  const member = fc.tuple(token, fc.option(inner), blank, blank);
  fc.assert(
    fc.property(fc.array(member), (members) => {
      const texts = members.map(([name, value]) => (value === null ? name : `${name.toUpperCase()}=${quoted(value)}`));
      const list = members.map(([, , before, after], at) => before + texts[at]! + after + (after && ',')).join(',');
      expect(elementsOf(list)).toEqual(texts);
      expect(directivesOf(list)).toEqual(members.map(([name, value]) => [name, value ?? '']));
    }),
  );
});

test('a list of anything at all is read at once, and what has no end ends with the text', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('"', '\\', ',', ';', '=', ' ', 'a') }),
      (text) => directivesOf(text).length <= text.length,
    ),
  );
  for (const long of ['"', ',', '\\', '" ', '="', ' ', '=', '"\\'].map((unit) => unit.repeat(262_144)))
    directivesOf(`${long}, a${long}b`);
  expect(directivesOf('a="b, c=d')).toEqual([
    ['a', '"b'],
    ['c', 'd'],
  ]);
});

const SECONDS = { '7': 7, '007 ': 7, '2.5': 2.5, '5, 9': 5 };
const NO_SECONDS = ['', '-5', '5s', '0x5', '1e3', '5 9', '.5'].map((text) => [text, undefined] as const);

test.each([...Object.entries(SECONDS), ...NO_SECONDS])(
  'RFC 9110, section 10.2.3: of %j the seconds are %s',
  (text, expected) => expect(secondsOf(text)).toBe(expected),
);
