import { median } from './processes.ts';

/** A figure that the project has to reach. */
export interface Goal {
  readonly figure: string;
  readonly value: number;
  readonly goal: number;
  readonly is: 'at least' | 'at most';
  readonly unit?: string;
  /** Answers were bad: nobody knows. */
  readonly isWorthless?: boolean;
}

/** Of all rounds the median, the least and the most. */
export function span(values: readonly number[], digits: number): string {
  const [middle, least, most] = [median(values), Math.min(...values), Math.max(...values)].map((value) =>
    value.toFixed(digits),
  );
  return `${middle} [${least}–${most}]`;
}

export const ratio = (value: number): string => value.toFixed(2);

/** In Markdown; the first column's head is the title. */
export function table(columns: readonly string[], title: string, rows: readonly (readonly string[])[]): void {
  console.log(`\n| ${[title, ...columns].join(' | ')} |\n| --- |${' --- |'.repeat(columns.length)}`);
  for (const row of rows) console.log(`| ${row.join(' | ')} |`);
}

export function goalsTable(goals: readonly Goal[]): void {
  const rows = goals.map((one) => {
    const { figure, value, goal, is, unit = '' } = one;
    return [figure, ratio(value) + unit, `${is} ${goal}${unit}`, verdictOn(one)];
  });
  table(['figure', 'goal', 'held or missed'], 'goals', rows);
}

function verdictOn({ value, goal, is, isWorthless = false }: Goal): string {
  if (isWorthless) return '**bad answers**';
  return (is === 'at least' ? value >= goal : value <= goal) ? 'held' : '**missed**';
}
