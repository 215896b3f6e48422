import { expect, vi } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import type { Fault } from './faults.ts';
import { expectCommonHeaders, expectProblem } from '../http/problem.ts';
import { type Door, openDoor } from '../support/door.ts';
import { exampleInput } from '../support/examples.ts';
import { type LogLine, startGateway, type TestGateway } from '../support/gateway.ts';
import { call, type TextAnswer } from '../support/http.ts';
import { bodyOf, callOf, goodAnswer, isCallTo, markOf, pathOf } from '../support/marked.ts';
import {
  barrier,
  type Call,
  hold,
  perCall,
  reply,
  type ScriptedUpstream,
  startUpstream,
} from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import type { Env, AtEnd } from '../support/world.ts';

/** The read that faults strike: alone, and as a section of the account overview. */
export const READ = 'listNotifications' satisfies OperationId;
export const WRITE = 'purchasePlan' satisfies OperationId;
export const OVERVIEW = '/bff/v1/account-overview';

/** What good answers are marked with: before the fault, in its place, and after it. */
export const MARKS = { before: 1, during: 2, after: 3 } as const;

/** Of faults that run to it; the others have long been answered. */
const SHORT_DEADLINE_MS = 300;
const LONG_DEADLINE_MS = 3_000;
/** What contract.md allows on top is 100 ms; a machine that is busy with other tests may take longer. */
const MARGIN_MS = 5_000;

/** As many as an overview has open. */
const MOST_CONNECTIONS = 4;

export interface Struck extends TextAnswer {
  /** Calls of the faulty operation that reached the upstream. */
  readonly calls: readonly Call[];
  /** Milliseconds over the deadline, negative when there was time left. */
  readonly overshootMs: number;
}

/** A gateway in front of an upstream that answers well, until a fault strikes. */
export class FaultWorld {
  readonly token = secret();
  readonly fault: Fault;
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
  readonly #door: Door | undefined;

  constructor(parts: { fault: Fault; upstream: ScriptedUpstream; gateway: TestGateway; door: Door | undefined }) {
    this.fault = parts.fault;
    this.upstream = parts.upstream;
    this.gateway = parts.gateway;
    this.#door = parts.door;
  }

  /** All is well, and what is well is marked so. */
  async answerWell(mark: number): Promise<void> {
    await this.#door?.open();
    this.upstream.on(
      () => true,
      perCall((to) => goodAnswer(to, mark)),
    );
  }

  /** Asks while the fault strikes this operation. */
  async askStruck(id: OperationId, path = pathOf(id)): Promise<Struck> {
    const { what } = this.fault;
    if (what === 'refused') await this.#door?.shut();
    else if (what === 'blackholed') await this.#door?.blackhole();
    else this.upstream.on(isCallTo(id), what(bodyOf(id, MARKS.during)));
    const callsBefore = this.upstream.callsTo(isCallTo(id)).length;
    const begunAt = performance.now();
    const answer = await this.ask(id, { path });
    const overshootMs = performance.now() - begunAt - deadlineOf(this.fault);
    expect(overshootMs).toBeLessThan(MARGIN_MS);
    return { ...answer, calls: this.upstream.callsTo(isCallTo(id)).slice(callsBefore), overshootMs };
  }

  ask(id: OperationId, { path = pathOf(id), token = this.token } = {}): Promise<TextAnswer> {
    const { method, body } = exampleInput(id);
    return call(this.gateway.url, { method, path, token, ...(body !== undefined && { body }) });
  }

  /** How often the upstream was called; and where it could not be, how often the gateway tried. */
  async count({ calls, headers }: Struck): Promise<string> {
    if (!this.#door) return `×${calls.length}`;
    return `×0 of ${String((await this.lineOf({ headers }))['upstream_calls'])}`;
  }

  /** Its line in the log. */
  lineOf({ headers }: Pick<Struck, 'headers'>): Promise<LogLine> {
    const requestId = headers['x-request-id'];
    return vi.waitFor(() => {
      const found = this.gateway.lines.find((one) => one['request_id'] === requestId);
      if (!found) throw new Error('no line of that request');
      return found;
    });
  }

  /** Other accounts are served as ever, on connections that have nothing of the fault in them. */
  async expectCleanConnections({ calls }: Struck): Promise<void> {
    await this.answerWell(MARKS.after);
    const gate = barrier();
    this.upstream.on(
      isCallTo(READ),
      perCall((to) => reply(hold(gate), goodAnswer(to, MARKS.after))),
    );
    const callsBefore = this.upstream.calls.length;
    // All at once, so that each connection that could be used again is.
    const others = Array.from({ length: MOST_CONNECTIONS }, () => this.ask(READ, { token: secret() }));
    await gate.count(MOST_CONNECTIONS);
    const clean = this.upstream.calls.slice(callsBefore).map(({ socket }) => socket);
    gate.release();
    for (const { status, text } of await Promise.all(others))
      expect([status, markOf(text)]).toEqual([200, MARKS.after]);
    if (!this.fault.endsConnection) return;
    for (const struck of calls) {
      expect(clean).not.toContain(struck.socket);
      await this.upstream.disconnected(struck);
    }
  }

  /** The account itself gets what the upstream says now. */
  async expectNothingKept(): Promise<void> {
    const callsBefore = this.upstream.callsTo(callOf(READ)).length;
    const again = await this.ask(READ);
    expect([again.status, markOf(again.text)]).toEqual([200, MARKS.after]);
    expect(this.upstream.callsTo(callOf(READ))).toHaveLength(callsBefore + 1);
  }

  /** Nobody asks the upstream for this account again before it is time. */
  async expectHeld(): Promise<TextAnswer> {
    const callsBefore = this.upstream.calls.length;
    const again = await this.ask(READ);
    expect(this.upstream.calls).toHaveLength(callsBefore);
    return again;
  }
}

const deadlineOf = ({ runsToDeadline }: Fault) => (runsToDeadline ? SHORT_DEADLINE_MS : LONG_DEADLINE_MS);

/** In real time, since what is measured is how long an answer takes. `atEnd` is of the test that this is for. */
export async function openFaultWorld(fault: Fault, atEnd: AtEnd, env: Env = {}): Promise<FaultWorld> {
  const upstream = await startUpstream();
  const door = typeof fault.what === 'string' ? await openDoor(upstream.url) : undefined;
  const gateway = await startGateway(door?.url ?? upstream.url, {
    env: { RATE_LIMIT_PER_MINUTE: '0', UPSTREAM_TIMEOUT_MS: String(deadlineOf(fault)), ...env },
  });
  atEnd(async () => {
    await gateway.close();
    await door?.shut();
    await upstream.close();
    upstream.assertNoUnexpected();
  });
  const world = new FaultWorld({ fault, upstream, gateway, door });
  await world.answerWell(MARKS.before);
  return world;
}

/** Status, and the code where it is a problem, which is then a whole one; else the headers of every answer. */
export function gist(answer: TextAnswer): string {
  if (answer.status < 300) {
    expectCommonHeaders(answer);
    return String(answer.status);
  }
  const { code } = answer.json as { readonly code: string };
  const { outcome } = expectProblem(answer, { status: answer.status, code });
  return `${answer.status} ${code}${outcome === undefined ? '' : `, ${outcome}`}`;
}
