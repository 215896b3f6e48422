import { fieldRefused, NO_SUCH, notFound } from './errors.ts';
import { activePlan, type Account, type Credential, type Plan, type World } from './state.ts';
import type { Instant } from './time.ts';

/** What the handler of a call without credential gets. */
export interface OpenCall {
  readonly world: World;
  readonly now: Instant;
  /** The `<ID>` of the path; empty where there is none. */
  readonly id: string;
  readonly url: URL;
  /** Its documented parameters are checked. */
  readonly query: URLSearchParams;
  /** A JSON object; `{}` when the body is empty. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Call extends OpenCall {
  readonly account: Account;
  readonly kind: Credential['kind'];
}

export interface Answer {
  readonly status: 200 | 201 | 204;
  /** Absent with 204. */
  readonly body?: unknown;
}

export type OpenHandler = (call: OpenCall) => Answer;

export type Handler = (call: Call) => Answer;

export const ok = (body: unknown): Answer => ({ status: 200, body });

export const created = (body: unknown): Answer => ({ status: 201, body });

export const noContent: Answer = { status: 204 };

/** The item whose id is in the path. */
export function byId<T extends { id: number | string }>(items: readonly T[], id: string): T {
  const found = items.find((item) => String(item.id) === id);
  if (!found) throw notFound();
  return found;
}

/** The plan that `plan_id` names, inactive ones included; without it the active one. */
export function planOf({ account, query }: Call): Plan {
  const id = query.get('plan_id');
  if (id === null) return activePlan(account);
  const plan = account.plans.find((candidate) => candidate.id === Number(id));
  if (!plan) throw fieldRefused('plan_id', NO_SUCH, 'invalid_choice');
  return plan;
}
