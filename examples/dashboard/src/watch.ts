import type { Answer, Portico } from 'portico-client';

// Until portico-client has it: asks every ten seconds.

type Plain = Answer<'getAccountOverview'>;
type Meta = Plain['meta']['sections'];

export interface Overview extends Omit<Plain, 'meta'> {
  readonly meta: {
    readonly complete: boolean;
    /** `code`: why a stale section is not newer. */
    readonly sections: { readonly [Name in keyof Meta]: Meta[Name] & { readonly code?: string } };
  };
}

const EVERY_MS = 10_000;
/** No copy of the browser's: with one, a 304 would bring back what its `meta` was. */
const headers = { 'If-None-Match': '"none"' };

export async function* watchOverview(
  portico: Portico,
  _overview: 'account-overview',
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<Overview, void, undefined> {
  for (;;) {
    const overview: Overview = await portico.getAccountOverview({}, { signal, headers });
    for (const meta of Object.values(overview.meta.sections))
      if (meta.state === 'stale') Object.assign(meta, { code: 'upstream_unavailable' });
    yield overview;
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    if (signal.aborted) return;
  }
}
