import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { ConsoleEvent } from '../../src/console/event.d.ts';
import { LOG_FOLDER } from '../support/gateway.ts';
import { stream } from '../support/http.ts';
import { type Env, openWorld, type World } from '../support/world.ts';

export const EVENTS = '/console/events';

export interface Watching {
  /** The next event; undefined when there are no more. */
  readonly next: () => Promise<ConsoleEvent | undefined>;
  /** Lets a second pass, and resolves with what is told then. */
  readonly second: () => Promise<ConsoleEvent>;
  readonly leave: () => void;
}

/** A world with an admin listener, whose upstream answers whatever it is asked. */
export async function openWatched(env: Env = {}): Promise<World> {
  const world = await openWorld(env, { hasAdmin: true });
  world.answerAll();
  return world;
}

/** Looks at the console of a gateway. What it tells is kept for test/logs, which looks for secrets in it. */
export async function watch({ gateway, advance }: Pick<World, 'gateway' | 'advance'>): Promise<Watching> {
  const left = new AbortController();
  onTestFinished(() => left.abort());
  const { status, headers, lines } = await stream(gateway.adminUrl ?? '', { path: EVENTS, signal: left.signal });
  expect([status, headers['content-type']]).toEqual([200, 'text/event-stream']);
  const iterator = lines[Symbol.asyncIterator]();
  const next = async () => {
    const { done, value } = await iterator.next();
    if (done || value === 'event: stopping') return undefined;
    expect(value).toMatch(/^data: \{/);
    expect((await iterator.next()).value).toBe('');
    return kept(value.slice('data: '.length));
  };
  return {
    next,
    async second() {
      advance(1);
      const event = await next();
      if (!event) throw new Error('there are no more events');
      return event;
    },
    leave: () => left.abort(),
  };
}

function kept(text: string): ConsoleEvent {
  mkdirSync(LOG_FOLDER, { recursive: true });
  appendFileSync(join(LOG_FOLDER, `${process.pid}.events`), `${text}\n`);
  return JSON.parse(text) as ConsoleEvent;
}
