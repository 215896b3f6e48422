import { cut, eachWhole, type Span } from '../core/json.ts';
import { valueOf } from '../core/values.ts';

/** A section as the function of an overview gets it. */
export interface Input {
  readonly text: string;
  /** Parsed and frozen, so that what is not changed can be written as it came. */
  readonly value: unknown;
}

export const inputOf = (text: string): Input => ({ text, value: frozen(valueOf(text)) });

function frozen(value: unknown): unknown {
  if (!isObject(value)) return value;
  for (const one of Object.values(value)) frozen(one);
  return Object.freeze(value);
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/**
 * The result of a function as JSON. An object or array of an input is written as it came, digit for digit.
 * @throws TypeError if it is no JSON, or what its getters throw
 */
export function jsonOf(result: unknown, inputs: readonly Input[]): string {
  let wholes: Wholes | undefined;
  let isJson = true;
  const text = written(result, (_, value: unknown) => {
    if (typeof value === 'bigint' || isPromise(value)) {
      isJson = false;
      return null;
    }
    if (!isObject(value) || !Object.isFrozen(value)) return value;
    wholes ??= new Wholes(inputs);
    return wholes.mark(value);
  });
  if (!isJson || text === undefined) throw new TypeError('what is computed is no JSON');
  return wholes?.filled(text) ?? text;
}

/** @throws TypeError for a cycle, behind which promises would not be met */
function written(result: unknown, replacer: (name: string, value: unknown) => unknown): string | undefined {
  try {
    return JSON.stringify(result, replacer);
  } catch (error) {
    hearAll(result, new Set());
    throw error;
  }
}

function hearAll(value: unknown, met: Set<unknown>): void {
  if (!isObject(value) || met.has(value)) return;
  met.add(value);
  if (!isPromise(value)) for (const one of Object.values(value)) hearAll(one, met);
}

/** Nobody else waits for it, so its failure is heard here. */
function isPromise(value: unknown): boolean {
  if (!isObject(value) || !('then' in value) || typeof value.then !== 'function') return false;
  (value as PromiseLike<unknown>).then(undefined, () => undefined);
  return true;
}

/** The objects and arrays of the inputs, each with its text, and those of them that a result has. */
class Wholes {
  readonly #texts = new WeakMap<object, Span & { readonly input: string }>();
  readonly #marked: string[] = [];
  /** Nobody else can have written it. */
  readonly #mark = crypto.randomUUID();

  constructor(inputs: readonly Input[]) {
    for (const { text: input, value } of inputs)
      eachWhole(input, value, (whole, { start, end }) => this.#texts.set(whole, { start, end, input }));
  }

  /** What stands for it until the whole is written; itself if it is of no input. */
  mark(value: object): unknown {
    const place = this.#texts.get(value);
    return place ? `${this.#mark}${this.#marked.push(cut(place.input, place)) - 1}` : value;
  }

  filled(text: string): string {
    return text
      .split(`"${this.#mark}`)
      .map((part, at) => (at === 0 ? part : this.#marked[parseInt(part, 10)] + part.slice(part.indexOf('"') + 1)))
      .join('');
  }
}
