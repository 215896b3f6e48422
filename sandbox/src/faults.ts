import * as z from 'zod/mini';
import { type OperationId, operations } from './operations.ts';

const isOperation = (name: string) => name === '*' || Object.hasOwn(operations, name);

/** Trouble for the next `times` calls of an operation. */
export const faultSchema = z.strictObject({
  operation: z.string().check(z.refine(isOperation, 'expected an operation id or *')),
  times: z._default(z.int().check(z.minimum(1)), 1),
  /** Answers with this status instead of the true one. */
  status: z.optional(z.int().check(z.minimum(200), z.maximum(599))),
  /** A text is sent as it is, anything else as JSON. */
  body: z.optional(z.unknown()),
  /** On the answer that is sent, whichever it is. */
  headers: z._default(z.record(z.string(), z.string()), {}),
  delayMs: z._default(z.number().check(z.minimum(0), z.maximum(600_000)), 0),
  /** Cuts the connection without an answer. */
  reset: z._default(z.boolean(), false),
  /** Answers 200 with JSON that ends too early. */
  malformed: z._default(z.boolean(), false),
  /** Lets the call do its work before it goes wrong: the outcome that a client cannot know. */
  afterWork: z._default(z.boolean(), false),
});

export type FaultInput = z.input<typeof faultSchema>;

export type Fault = z.infer<typeof faultSchema>;

export class Faults {
  #waiting: { readonly fault: Fault; left: number }[] = [];

  add(input: FaultInput): void {
    const fault = faultSchema.parse(input);
    this.#waiting.push({ fault, left: fault.times });
  }

  /** The oldest fault for this operation, with one use less. */
  take(operation: OperationId): Fault | null {
    const first = this.#waiting.find(({ fault }) => fault.operation === '*' || fault.operation === operation);
    if (!first) return null;
    first.left -= 1;
    this.#waiting = this.#waiting.filter(({ left }) => left > 0);
    return first.fault;
  }

  readonly clear = (): void => {
    this.#waiting = [];
  };
}

/** The answer that a fault sends in place of the true one; `null` when it only delays or adds headers. */
export function faultyResponse(fault: Fault): Response | null {
  const { body, headers, malformed, status } = fault;
  if (malformed) return respond('{"id":1005,"plan":10', 200, headers);
  if (status === undefined && body === undefined) return null;
  return respond(typeof body === 'string' ? body : (JSON.stringify(body) ?? ''), status ?? 200, headers);
}

function respond(text: string, status: number, headers: Record<string, string>): Response {
  const type = text.startsWith('<') ? 'text/html; charset=utf-8' : 'application/json';
  const bodiless = text === '' || [204, 205, 304].includes(status);
  return new Response(bodiless ? null : text, {
    status,
    headers: { ...(!bodiless && { 'Content-Type': type }), ...headers },
  });
}
