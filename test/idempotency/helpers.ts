import { expect } from 'vitest';
import type { ZodMiniType } from 'zod/mini';
import type { OperationId } from '../support/account-api.ts';
import { expectCommonHeaders, expectProblem } from '../http/problem.ts';
import { exampleRequest } from '../support/examples.ts';
import type { CallOptions, TextAnswer } from '../support/http.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { json, type Step } from '../support/scripted-upstream.ts';
import { rowOf } from '../support/table.ts';
import { type Asking, openWorld, type World } from '../support/world.ts';

export const DAY_SECONDS = 86_400;

type Request = Pick<CallOptions, 'path' | 'body'>;

/** The example with one thing in it changed, of which the operation still approves. */
export const differentFrom = (id: OperationId): Request => {
  const { path, body } = exampleRequest(id);
  const row = rowOf(id);
  if (row.body?.optional) return { path, body: undefined };
  if (row.body && body !== undefined) return { path, body: differentBody(row.body.schema, body, row.notCompared) };
  return { path: row.idForm ? path.replace('12345', '54321') : `${path}?x_other=1` };
};

/** With a member more; where the schema takes none that it does not know, with one changed or left out that counts. */
function differentBody(schema: ZodMiniType, body: string, notCompared: ReadonlySet<string> = new Set()): string {
  const members = JSON.parse(body) as Readonly<Record<string, unknown>>;
  const others = Object.keys(members)
    .filter((name) => !notCompared.has(name))
    .flatMap((name) => [changed(members[name]), undefined].map((value) => ({ ...members, [name]: value })));
  const other = [{ x_other: 1, ...members }, ...others].find((one) => schema.safeParse(one).success);
  if (!other) throw new Error(`no other body than ${body} fits`);
  return JSON.stringify(other);
}

function changed(value: unknown): unknown {
  if (typeof value === 'string') return `x${value}`;
  return typeof value === 'number' ? value + 1 : !value;
}

/** The same body, members the other way round, spaced and escaped. */
export const reprinted = (body: unknown): string => {
  const members = Object.entries(JSON.parse(String(body)) as Record<string, unknown>);
  const texts = members.map(([name, value]) => `${escaped(name)} :\t${JSON.stringify(value, null, 2)}`);
  return `\n{ ${texts.toReversed().join(' ,\r\n')} } `;
};

const escaped = (name: string) => `"${Array.from(name, (char) => `\\u${hexOf(char)}`).join('')}"`;
const hexOf = (char: string) => char.charCodeAt(0).toString(16).padStart(4, '0');

/** A good answer that no other is like. */
export const good = (id: OperationId, mark: number): Step => {
  const text = bodyOf(id, mark);
  return text === '' ? json(204) : json(201, text);
};

let keys = 0;

export interface Shop extends World {
  readonly key: string;
  /** The example request with the key. */
  readonly keyed: (id: OperationId, options?: Asking) => Promise<TextAnswer>;
  /** What the upstream answers to the operation, once each; what is asked beyond that fails the test. */
  readonly script: (id: OperationId, ...steps: readonly Step[]) => void;
}

/** A world with one client and one key of his. */
export async function openShop(...args: Parameters<typeof openWorld>): Promise<Shop> {
  const world = await openWorld(...args);
  const key = `key-${++keys}`;
  return {
    ...world,
    key,
    keyed: (id, options = {}) => world.ask(id, { key, ...options }),
    script: (id, ...steps) => void world.upstream.once(callOf(id), ...steps),
  };
}

/** What a test compares of an answer, which is checked to be a whole one: what it says, and whether it is a replay. */
export const gist = (answer: TextAnswer): string => {
  const replayed = answer.headers['idempotency-replayed'];
  const suffix = replayed === undefined ? '' : ` replayed=${replayed}`;
  if (answer.status < 300) {
    expectCommonHeaders(answer);
    expect(answer.headers['cache-control']).toBe('no-store');
    return `${answer.status} ${answer.text}`.trim() + suffix;
  }
  const { code } = answer.json as { readonly code: string };
  const { outcome } = expectProblem(answer, { status: answer.status, code });
  return `${answer.status} ${code}${outcome === undefined ? '' : ` ${outcome}`}${suffix}`;
};

/** What `good` makes of an answer. */
export const goodGist = (id: OperationId, mark: number, { isReplay = false } = {}): string => {
  const text = bodyOf(id, mark);
  return `${text === '' ? '204' : `201 ${text}`}${isReplay ? ' replayed=true' : ''}`;
};

export const IN_PROGRESS = '409 idempotency_in_progress';
export const REUSED = '422 idempotency_key_reused';
export const UNKNOWN = '409 outcome_unknown unknown';
