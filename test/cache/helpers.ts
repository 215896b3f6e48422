import { expect } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import type { TextAnswer } from '../support/http.ts';
import { bodyOf, callOf, goodAnswer, markOf, pathOf } from '../support/marked.ts';
import { type Barrier, type Call, hold, json, perCall, reply, type Step } from '../support/scripted-upstream.ts';
import type { Asking, World } from '../support/world.ts';

export const cacheStatusOf = ({ headers }: TextAnswer): string | undefined => headers['cache-status'];

/** How the cache came to an answer, and what was in it. */
export const seen = (answer: TextAnswer): readonly unknown[] => [
  answer.status,
  cacheStatusOf(answer),
  markOf(answer.text),
];

export const MISS = 'portico; fwd=miss; stored';
/** Asked for, and kept by nobody. */
export const UNKEPT = 'portico; fwd=miss';
export const NO_CACHE = { 'Cache-Control': 'no-cache' } as const;
export const NO_STORE = { 'Cache-Control': 'no-store' } as const;

export const hit = (ttl: number): string => `portico; hit; ttl=${ttl}`;

/** A hit on a fresh copy, however old. */
export const isHit = expect.stringMatching(/^portico; hit; ttl=[1-9]/) as unknown;

export const askAll = (world: World, ids: readonly OperationId[], options?: Asking): Promise<TextAnswer[]> =>
  Promise.all(ids.map((id) => world.ask(id, options)));

/** What the upstream holds, as a number that its good writes raise and all its answers carry. */
export const versioned = (world: World): { version: number } => {
  const state = { version: 1 };
  world.answerAll(({ method }) => (method === 'GET' ? state.version : ++state.version));
  return state;
};

/** What was true when the call came, told when the barrier opens. */
export const goodAfter = (gate: Barrier, to: Call, mark: number): Step => reply(hold(gate), goodAnswer(to, mark));

/** Answers a write, which changes what the upstream holds only now. */
export const raising = (state: { version: number }): Step => perCall((to) => goodAnswer(to, ++state.version));

/** The first answer is held, later ones are marked 2, 3 … */
export const holdFirst = ({ upstream }: World, id: OperationId, gate: Barrier) =>
  upstream.on(
    callOf(id),
    reply(hold(gate), json(200, bodyOf(id, 1))),
    ...[2, 3, 4].map((mark) => json(200, bodyOf(id, mark))),
  );

export const requestOf = ({ token }: World, id: OperationId) =>
  `GET ${pathOf(id)} HTTP/1.1\r\nHost: portico.test\r\nAuthorization: Token ${token}\r\n\r\n`;
