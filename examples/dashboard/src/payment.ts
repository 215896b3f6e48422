import { useEffect, useState } from 'react';
import type { Answer } from 'portico-client';
import { portico } from './portico.ts';

type Payment = Answer<'getPendingPayment'>;

const ASK_EVERY_MS = 2_000;
/** With an ETag alone `fetch` adds `no-cache`. */
const CHANGED = { 'Cache-Control': 'max-age=0', Prefer: 'wait=25' };

/** As it changes, to its end. Where the gateway waits for a change one request is open, else one is sent every two seconds. */
async function* follow(id: number, signal: AbortSignal): AsyncGenerator<Payment, void, undefined> {
  let etag: string | null = null;
  for (;;) {
    const headers: Record<string, string> = etag === null ? {} : { ...CHANGED, 'If-None-Match': etag };
    const response = await portico.response('getPendingPayment', { id }, { signal, headers });
    if (response.status === 200) {
      const payment = portico.parse(await response.text()) as Payment;
      yield payment;
      if (payment.status !== 'pending') return;
      etag = response.headers.get('ETag');
    }
    if (etag === null || !response.headers.has('Preference-Applied'))
      await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
  }
}

/** The payment with this id, until it is over. A reading that fails is done once more later. */
export function usePayment(id: number | undefined, onOver: () => void): Payment | undefined {
  const [payment, setPayment] = useState<Payment>();
  useEffect(() => {
    setPayment(undefined);
    if (id === undefined) return undefined;
    const left = new AbortController();
    const { signal } = left;

    async function run(of: number): Promise<void> {
      for (let isOver = false; !isOver && !signal.aborted;) {
        try {
          for await (const read of follow(of, signal)) setPayment(read);
          isOver = true;
          onOver();
        } catch {
          await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
        }
      }
    }
    void run(id);
    return () => left.abort();
  }, [id]);
  return payment;
}
