import { useEffect, useRef, useState } from 'react';
import { readLines, watch } from './reading.ts';
import { type Change, NAMES, type SectionName, type Sections } from './sections.ts';

const nothing = { isWaiting: true };
const start: Sections = {
  subscription: nothing,
  payment_method: nothing,
  notifications: nothing,
  referral_config: nothing,
};

/** The account overview: section by section as it comes, and from then on as it changes. */
export function useOverview() {
  const [sections, setSections] = useState(start);
  const reading = useRef(new AbortController());
  const change: Change = (name, next) => setSections((all) => ({ ...all, [name]: next(all[name]) }));

  /** Its signal is aborted already where the page of the account is gone. */
  function begin(next: Parameters<Change>[1]): AbortSignal {
    if (reading.current.signal.aborted) return reading.current.signal;
    reading.current.abort();
    reading.current = new AbortController();
    for (const name of NAMES) change(name, next);
    return reading.current.signal;
  }

  /** Takes the gateway's copies; what the page has stays until there is something else. */
  function readAgain(): Promise<void> {
    const signal = begin((before) => ({ ...before, isWaiting: true }));
    return new Promise((resolve) => void watch({ change, signal, onNews: resolve }));
  }

  /** As on a first visit: what the page has is forgotten. `fresh` wants none of the gateway's copies either. */
  async function readEverything({ fresh = true } = {}): Promise<void> {
    const signal = begin(() => nothing);
    const trouble = await readLines({ change, fresh, signal });
    void watch({ change, signal, trouble });
  }

  async function retry(name: SectionName): Promise<void> {
    change(name, () => nothing);
    await readLines({ names: [name], change, signal: reading.current.signal });
  }

  useEffect(() => {
    reading.current = new AbortController();
    void readEverything({ fresh: false });
    return () => reading.current.abort();
  }, []);

  return { sections, readAgain, readEverything, retry, change };
}
