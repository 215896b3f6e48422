import { useEffect, useRef, useState } from 'react';
import { type Answer, type SectionLine, streamOverview } from 'portico-client';
import { portico } from './portico.ts';
import { type Trouble, troubleOf } from './problem.ts';

interface Data {
  readonly subscription: Answer<'getSubscription'>;
  readonly payment_method: Answer<'getPaymentMethod'> | null;
  readonly notifications: Answer<'listNotifications'>;
  readonly referral_config: Answer<'getReferralConfig'>;
}

export type SectionName = keyof Data;

/** One part of the page: what is there of it, and whether more is under way. */
export interface SectionState<T> {
  readonly isWaiting: boolean;
  readonly data?: T | undefined;
  readonly trouble?: Trouble | undefined;
  readonly isStale?: boolean | undefined;
  /** Seconds since the upstream sent it; known soon after an older copy came. */
  readonly age?: number | undefined;
  /** Milliseconds from the request to this section. */
  readonly afterMs?: number | undefined;
}

export type Sections = { readonly [Name in SectionName]: SectionState<Data[Name]> };

const NAMES: readonly SectionName[] = ['subscription', 'payment_method', 'notifications', 'referral_config'];
const waiting = { isWaiting: true };
const start: Sections = {
  subscription: waiting,
  payment_method: waiting,
  notifications: waiting,
  referral_config: waiting,
};

interface Reading {
  readonly names: readonly SectionName[];
  readonly fresh?: boolean;
  readonly signal: AbortSignal;
}

/** The account overview, section by section as it comes. */
export function useOverview() {
  const [sections, setSections] = useState(start);
  const reading = useRef(new AbortController());

  const set = (name: SectionName, state: object) => setSections((all) => ({ ...all, [name]: state }));
  const change = (name: SectionName, state: object) =>
    setSections((all) => ({ ...all, [name]: { ...all[name], ...state } }));

  async function read({ names, fresh = false, signal }: Reading): Promise<void> {
    const startedAt = performance.now();
    const requestId = crypto.randomUUID(); // ours, so that it is known for each section that fails
    const options = { fresh, signal, headers: { 'X-Request-Id': requestId } };
    const missing = new Set(names);
    try {
      for await (const line of streamOverview(portico, 'getAccountOverview', { sections: names }, options)) {
        missing.delete(line.section);
        set(line.section, { ...stateOf(line, requestId), afterMs: performance.now() - startedAt });
        if (line.state === 'stale') void findAge(line.section, signal);
      }
    } catch (error) {
      if (signal.aborted) return;
      for (const name of missing) set(name, { isWaiting: false, trouble: troubleOf(error) });
    }
  }

  /** Lines do not say how old they are; the overview as JSON does. */
  async function findAge(name: SectionName, signal: AbortSignal): Promise<void> {
    const overview = await portico.getAccountOverview({ sections: [name] }, { signal }).catch(() => undefined);
    change(name, { age: overview?.meta.sections[name]?.age });
  }

  /** Everything once more. `fresh` wants none of the gateway's copies, and shows nothing until it is there. */
  async function readAll({ fresh = false } = {}): Promise<void> {
    reading.current.abort();
    reading.current = new AbortController();
    for (const name of NAMES) (fresh ? set : change)(name, waiting);
    await read({ names: NAMES, fresh, signal: reading.current.signal });
  }

  async function retry(name: SectionName): Promise<void> {
    set(name, waiting);
    await read({ names: [name], signal: reading.current.signal });
  }

  useEffect(() => {
    void readAll();
    return () => reading.current.abort();
  }, []);

  return { sections, readAll, retry, change };
}

function stateOf(line: SectionLine<'getAccountOverview'>, requestId: string): SectionState<unknown> {
  if (!('error' in line)) return { isWaiting: false, data: line.data, isStale: line.state === 'stale' };
  const { code, detail, retry_after: retryAfter } = line.error;
  return { isWaiting: false, trouble: { code, detail, requestId, retryAfter } };
}
