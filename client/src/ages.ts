/** What an overview says of a section. */
export interface SectionState {
  state?: string;
  age?: number;
  readonly code?: string;
}

/**
 * Corrects what was said of sections so long ago, by a 304, whose `Age` is that of the oldest: none is older than that, and none
 * has grown older than the time that has passed. One that was read again meanwhile is no longer stale.
 */
export function correctAges(sections: Record<string, SectionState>, passedMs: number, { headers }: Response): void {
  const oldest = Number(headers.get('Age') ?? Infinity);
  const passed = Math.max(0, Math.round(passedMs / 1000));
  for (const section of Object.values(sections)) {
    if (section.age === undefined) continue;
    const grown = section.age + passed;
    if (section.state === 'stale' && !section.code && oldest + 1 < grown) section.state = 'fresh';
    section.age = Math.min(oldest, grown);
  }
}
