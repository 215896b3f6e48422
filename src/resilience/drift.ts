import * as z from 'zod/mini';
import type { Logger } from '../core/logger.ts';
import type { Metrics } from '../core/metrics.ts';
import type { UpstreamAnswer } from '../upstream/call.ts';
import type { Operation } from '../upstream/operation.ts';

/** After this many answers of an operation that fit, only every twentieth is checked, until one does not fit. */
const TRUSTED_AFTER = 100;
const THEN_ONE_IN = 20;

interface Tools {
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/**
 * Compares answers with their schemas. Fields that do not fit are logged each time that their count reaches a power of
 * two: a lasting change of the upstream is reported again and again, without flooding the log.
 */
export class Drift {
  readonly #tools: Tools;
  /** Answers in a row that fitted, by operation. */
  readonly #fitting = new Map<string, number>();
  /** Misfits so far, by operation and documented field: there are not many. */
  readonly #counts = new Map<string, number>();

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /** Checks an answer, and reports the fields that do not fit. */
  check({ id, answer: schema }: Operation, { text, value: whole }: UpstreamAnswer): void {
    if (text === null || !schema) return;
    const inRow = this.#fitting.get(id) ?? 0;
    this.#fitting.set(id, inRow + 1);
    if (inRow > TRUSTED_AFTER && inRow % THEN_ONE_IN !== 0) return;
    const value = text.length > WHOLE_UP_TO ? sampleOf(whole) : whole;
    for (const field of misfits(schema, value)) {
      this.#fitting.set(id, 0);
      this.#report(id, field);
    }
  }

  #report(operation: string, field: string): void {
    const { logger, metrics } = this.#tools;
    metrics.drifted(operation);
    const key = `${operation} ${field}`;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    if (Math.log2(count) % 1 === 0) logger.warn({ operation, field, count }, 'upstream answer does not fit its schema');
  }
}

/** Only a sample of an answer with more characters is checked: checking all of a bad one would block the process. */
const WHOLE_UP_TO = 8_192;
const SAMPLE_ITEMS = 20;
const SAMPLE_MEMBERS = 100;

function sampleOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, SAMPLE_ITEMS).map(sampleOf);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).slice(0, SAMPLE_MEMBERS);
  return Object.fromEntries(members.map(([name, inner]) => [name, sampleOf(inner)]));
}

const MAX_FIELDS = 20;

function misfits(schema: z.ZodMiniType, value: unknown): Set<string> {
  const checked = schema.safeParse(value);
  const issues = checked.error?.issues ?? [];
  return new Set(issues.slice(0, MAX_FIELDS).map(({ path }) => fieldPath(schema, path)));
}

/** `results[].amount`: no positions, and only names that the schema documents; keys of a map are data. */
function fieldPath(schema: z.core.$ZodType, path: readonly PropertyKey[]): string {
  let at: z.core.$ZodType | undefined = schema;
  const steps = path.map((step) => {
    const inner = at && unwrapped(at);
    const shape: z.core.$ZodShape = inner instanceof z.ZodMiniObject ? inner.def.shape : {};
    const isDocumented = Object.hasOwn(shape, step);
    at = isDocumented ? shape[String(step)] : inner instanceof z.ZodMiniArray ? inner.def.element : undefined;
    if (typeof step === 'number') return '[]';
    return isDocumented ? `.${String(step)}` : '.*';
  });
  return steps.join('').replace(/^\./, '') || '(whole)';
}

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  const isWrapped = schema instanceof z.ZodMiniOptional || schema instanceof z.ZodMiniNullable;
  return isWrapped ? unwrapped(schema.def.innerType) : schema;
}
