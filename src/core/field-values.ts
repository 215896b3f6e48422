/** The grammar of the values of HTTP fields, for what clients send and for what the upstream sends. */

/** A comma, which divides a list, or a text in quotes, in which commas do not divide. The closing quote may be missing. */
const COMMA_OR_QUOTED = /,|"(?:[^"\\]|\\.)*"?/g;
const QUOTED = /^"((?:[^"\\]|\\.)*)"$/;
const WITHOUT_PARAMETERS = /^(?:[^;"]|"(?:[^"\\]|\\.)*"?)+/;

/** The lookbehind makes the search begin once for a run of blanks. Else the time grows with the square of the run's length. */
const withoutBlanks = (text: string) => text.replaceAll(/^[\t ]+|(?<![\t ])[\t ]+$/g, '');

/** The elements of a list that are not empty (RFC 9110, section 5.6.1). A quote that is never closed is an ordinary character. */
export function elementsOf(list: string): string[] {
  if (list === '') return [];
  const elements: string[] = [];
  let from = 0;
  for (const { 0: found, index } of list.matchAll(COMMA_OR_QUOTED)) {
    if (found === ',') {
      elements.push(list.slice(from, index));
      from = index + 1;
    } else if (!QUOTED.test(found)) {
      elements.push(...list.slice(from, index + found.length).split(','));
      from = list.length;
    }
  }
  elements.push(list.slice(from));
  return elements.map(withoutBlanks).filter((element) => element !== '');
}

/** A name in lower case, and a value without its quotes; the value is empty where there is none. */
type Directive = readonly [name: string, value: string];

/** A list of directives (RFC 9111, section 5.2) or of preferences (RFC 7240, section 2). Parameters are left out. */
export function directivesOf(list: string): Directive[] {
  return elementsOf(list).map((element) => {
    const [text = ''] = WITHOUT_PARAMETERS.exec(element) ?? [];
    const [name = '', ...rest] = text.split('=');
    return [withoutBlanks(name).toLowerCase(), unquoted(withoutBlanks(rest.join('=')))];
  });
}

/** What a quoted string stands for (RFC 9110, section 5.6.4). Any other text is left as it is. */
function unquoted(text: string): string {
  const inner = QUOTED.exec(text)?.[1];
  return inner === undefined ? text : inner.replaceAll(/\\(.)/g, '$1');
}

const TIME = String.raw`(?<hour>[01]\d|2[0-3]):(?<minute>[0-5]\d):(?<second>[0-5]\d|60)`;
/** What follows a single value: nothing, or a comma where the field came twice. Then the first value counts. */
const END = String.raw`(?=[\t ]*(?:,|$))`;

/** The three forms of a date (RFC 9110, section 5.6.7), without regard to case (RFC 9111, section 4.2). */
const DATES = [
  String.raw`^[a-z]{3}, (?<day>\d\d) (?<month>[a-z]{3}) (?<year>\d{4}) ${TIME} GMT${END}`,
  String.raw`^[a-z]{6,9}, (?<day>\d\d)-(?<month>[a-z]{3})-(?<year>\d\d) ${TIME} GMT${END}`,
  String.raw`^[a-z]{3} (?<month>[a-z]{3}) (?<day>[ \d]\d) ${TIME} (?<year>\d{4})${END}`,
].map((form) => new RegExp(form, 'i'));

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** A year of two digits that seems to be further in the future is of the century before. */
const MOST_YEARS_AHEAD = 50;

/** Milliseconds since 1970; undefined for any text that is no date of these forms. `now`: milliseconds since 1970. */
export function dateOf(text: string, now: number): number | undefined {
  const parts = DATES.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined);
  if (!parts) return undefined;
  const number = (name: string) => Number(parts[name]);
  const month = MONTHS.indexOf(parts['month']?.toLowerCase() ?? '');
  let year = number('year');
  if (parts['year']?.length === 2) {
    year += 2000;
    if (year > new Date(now).getUTCFullYear() + MOST_YEARS_AHEAD) year -= 100;
  }
  const ms = Date.UTC(year, month, number('day'), number('hour'), number('minute'), number('second'));
  const day = new Date(Date.UTC(year, month, number('day')));
  return month >= 0 && day.getUTCDate() === number('day') ? ms : undefined;
}

const SECONDS = new RegExp(String.raw`^[\t ]*(\d+(?:\.\d+)?)${END}`);

/** A number of seconds, which may have a fraction; undefined for any other text. */
export function secondsOf(text: string): number | undefined {
  const seconds = SECONDS.exec(text)?.[1];
  return seconds === undefined ? undefined : Number(seconds);
}
