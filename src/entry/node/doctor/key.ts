import { about, type Finding } from './findings.ts';
import type { Probe } from './probe.ts';

const { good, poor, bad } = about('key');

/** So many reads at once. */
const AT_ONCE = 4;

/** Which reads the upstream lets this key do. Nothing is written, and nothing of the answers is shown. */
export async function keyFindings(probe: Probe, key: unknown): Promise<Finding[]> {
  if (typeof key !== 'string' || key === '')
    return [good('PORTICO_KEY is not set: with the key of an account in it, this says what that key may read')];
  if (!/^[!-~]{1,4096}$/.test(key))
    return [bad('PORTICO_KEY is no key', 'A key is 1 to 4096 visible characters without spaces')];
  return verdicts(await outcomesOf(probe, key));
}

/** Says of a key that it was not sent, and why. */
export const keyLeftOut = (key: unknown, why: string): Finding[] =>
  key === undefined || key === '' ? [] : [poor('PORTICO_KEY was not looked at', why)];

/** The names of the reads, by what came of them. */
type Outcomes = ReadonlyMap<string, readonly string[]>;

async function outcomesOf(probe: Probe, key: string): Promise<Outcomes> {
  const outcomes: { readonly id: string; readonly outcome: string }[] = [];
  const waiting = [...probe.reads];
  const askAll = async () => {
    for (let read = waiting.shift(); read; read = waiting.shift()) {
      const answer = await probe.ask(read, key);
      outcomes.push({ id: read.id, outcome: 'reason' in answer ? answer.reason : String(answer.status) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, askAll));
  const grouped = Map.groupBy(outcomes, ({ outcome }) => outcome);
  return new Map([...grouped].map(([outcome, list]) => [outcome, list.map(({ id }) => id).toSorted()]));
}

/** With 404 the account has none of it, and may ask. */
const MAY = ['200', '404'];

function verdicts(outcomes: Outcomes): Finding[] {
  const may = MAY.flatMap((outcome) => outcomes.get(outcome) ?? []);
  const others = [...outcomes].filter(([outcome]) => !MAY.includes(outcome));
  if (may.length === 0 && outcomes.has('401'))
    return [
      bad('the upstream does not accept PORTICO_KEY (401)', 'Is it of this upstream, complete, and still valid?'),
    ];
  const reads = may.length > 0 ? [good(`may read ${may.join(', ')}`)] : [];
  return [...reads, ...others.map(([outcome, ids]) => verdictOf(outcome, ids.join(', ')))];
}

function verdictOf(outcome: string, reads: string): Finding {
  if (outcome === '401' || outcome === '403')
    return poor(
      `may not read ${reads} (${outcome})`,
      'Sections that need these will fail for accounts with such a key',
    );
  if (outcome === '429') return poor(`too many requests to find out about ${reads}`, 'Try again in a minute');
  return poor(`no good answer to ${reads} (${outcome})`, 'Ask whoever runs the upstream');
}
