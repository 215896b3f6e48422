import type { ZodType } from 'zod';
import type { Call } from './client.ts';

/** Told once for each field of an answer that does not fit its schema. */
export type DriftReport = (drift: { readonly operation: string; readonly field: string }) => void;

/** Holds every fresh answer against its schema. What does not fit is reported by field and passed on as it came. */
export function watchDrift(report: DriftReport) {
  return (next: Call): Call =>
    async (call) => {
      const answer = await next(call);
      if (answer.text !== null && call.operation.answer) {
        for (const field of misfits(call.operation.answer, answer.value))
          report({ operation: call.operation.id, field });
      }
      return answer;
    };
}

const MAX_FIELDS = 20;

function misfits(schema: ZodType, value: unknown): Set<string> {
  const checked = schema.safeParse(value);
  const paths = checked.success ? [] : checked.error.issues.slice(0, MAX_FIELDS).map((issue) => fieldPath(issue.path));
  return new Set(paths);
}

/** `results[].amount`: neither positions nor names that the upstream made up, which might be data. */
function fieldPath(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? '[]' : `.${safeName(String(step))}`));
  return steps.join('').replace(/^\./, '') || '(whole)';
}

const safeName = (name: string) => (/^[a-z][a-z0-9_]{0,63}$/.test(name) ? name : '*');
