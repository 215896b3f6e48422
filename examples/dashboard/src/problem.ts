import { PorticoProblem } from 'portico-client';

/** What the page says of something that failed. */
export interface Trouble {
  readonly code: string;
  readonly detail: string;
  readonly requestId: string;
  readonly retryAfter?: number | undefined;
}

export function troubleOf(error: unknown): Trouble {
  if (error instanceof PorticoProblem) return error;
  return { code: 'error_in_page', detail: String(error), requestId: '' };
}

/** One sentence. What is wrong with fields stands at the fields. */
export function summaryOf(error: unknown): string {
  const isOfFields = error instanceof PorticoProblem && Object.keys(error.errors).some((field) => field !== '');
  return isOfFields ? 'See what is said at the fields.' : troubleOf(error).detail;
}

/** What is said of a field, and of all that lies below it: `a` gets the messages of `a.b` too. */
export function messagesOf(error: unknown, field: string): string[] {
  if (!(error instanceof PorticoProblem)) return [];
  return Object.entries(error.errors)
    .filter(([name]) => name === field || name.startsWith(`${field}.`))
    .flatMap(([, errors]) => errors.map(({ message }) => message));
}
