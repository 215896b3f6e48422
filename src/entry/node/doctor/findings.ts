import { setTimeout as sleep } from 'node:timers/promises';
import { styleText } from 'node:util';

/** What was found out about one thing. `advice`: what to do, or what follows from it. */
export interface Finding {
  readonly subject: string;
  readonly verdict: 'good' | 'poor' | 'bad';
  readonly text: string;
  readonly advice?: string | undefined;
}

/** Makes findings of one subject. */
export const about = (subject: string) => ({
  good: (text: string): Finding => ({ subject, verdict: 'good', text }),
  poor: (text: string, advice: string): Finding => ({ subject, verdict: 'poor', text, advice }),
  bad: (text: string, advice?: string): Finding => ({ subject, verdict: 'bad', text, advice }),
});

const COLOURS = { good: 'green', poor: 'yellow', bad: 'red' } as const;

/** Of the longest subject, `configuration`. */
const WIDTH = 13;

/** What would move the cursor, or turn the direction of the text: a server may say such things. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** One line, with a colour only where standard output is a terminal that wants some. */
export function textOf({ subject, verdict, text, advice }: Finding): string {
  const said = advice === undefined ? text : `${text}${text.endsWith('?') ? '' : '.'} ${advice}`;
  const words = said.replaceAll(UNSEEN, '\uFFFD');
  return `${styleText(COLOURS[verdict], verdict.padEnd(4))}  ${subject.padEnd(WIDTH)}  ${words}\n`;
}

export function sumOf(findings: readonly Finding[]): string {
  const count = (of: Finding['verdict']) => findings.filter(({ verdict }) => verdict === of).length;
  return `${count('good')} good, ${count('poor')} poor, ${count('bad')} bad\n`;
}

export const isBad = ({ verdict }: Finding): boolean => verdict === 'bad';

/** What `work` finds, or that it finds nothing in time or at all. */
export async function within(ms: number, subject: string, work: () => Promise<Finding[]>): Promise<Finding[]> {
  const { bad } = about(subject);
  const late = sleep(ms, [bad(`no result within ${ms / 1000} s`, 'Something on the way takes, and does not answer')]);
  try {
    return await Promise.race([work(), late]);
  } catch (error) {
    return [bad(`cannot be looked at (${codeOf(error)})`, 'This may be a fault of the doctor')];
  }
}

/** What an error is called by Node, OpenSSL or a library; its message might hold a secret. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
