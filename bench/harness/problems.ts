const SHOWN = 10;

const found: string[] = [];

/** Says at once what makes figures worthless. */
export function problem(text: string): void {
  const short = text.slice(0, 300);
  found.push(short);
  console.error(`\nBAD ANSWERS: ${short}`);
}

export const countProblems = (): number => found.length;

/** Says it again at the end, where it is read. */
export function repeatProblems(): void {
  if (found.length === 0) return;
  console.error(`\nBAD ANSWERS: FIGURES ABOVE ARE WORTHLESS. ${found.length} times, such as:`);
  for (const text of new Set(found.slice(0, SHOWN))) console.error(`  ${text}`);
}
