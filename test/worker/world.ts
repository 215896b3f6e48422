import type { AccountsBinding } from '../../src/entry/worker/account.ts';
import { worker } from '../../src/entry/worker/serve.ts';
import { portico } from '../../src/portico.ts';
import { overviews, proxyAccount } from '../../src/proxy-account/index.ts';
import type { OperationId } from '../support/account-api.ts';
import { START_MS } from '../support/clock.ts';
import { markOf } from '../support/marked.ts';
import { objectShelf } from '../support/object-storage.ts';
import { secret } from '../support/secrets.ts';
import { requestOf, VersionedUpstream } from '../support/versioned-upstream.ts';

type Stub = ReturnType<AccountsBinding['get']>;

/** Isolates over the same objects, whose time stands still, and of which some calls may be made to go wrong. */
export class World extends VersionedUpstream {
  readonly #objects = objectShelf({ now: () => START_MS });
  readonly #waitUntil: Promise<unknown>[] = [];
  /** The objects in the order in which they were first asked. */
  readonly asked: string[] = [];
  /** Decides over a call before it is made. */
  before: (object: string, method: string) => Promise<void> = async () => undefined;

  isolate(vars: Readonly<Record<string, string>> = {}) {
    const started = worker((options) => portico({ ...options, rows: proxyAccount, overviews }).app);
    const env = {
      UPSTREAM_BASE_URL: this.upstream.url,
      SECRETS: 'for-development-only-and-known-to-all',
      ACCOUNTS: { idFromName: (name: string) => name, get: (id: string) => this.#stub(id) },
      ...vars,
    };
    return async (asked: OperationId | '/livez', token = secret()) => {
      const { path, method, body } = asked === '/livez' ? { path: asked } : requestOf(asked);
      const headers = { Authorization: `Token ${token}`, 'Content-Type': 'application/json' };
      const init = { headers, ...(method !== undefined && { method }), ...(body !== undefined && { body }) };
      const answer = await started.fetch(new Request(`http://portico.test${path}`, init), env, {
        waitUntil: (work) => void this.#waitUntil.push(work),
        passThroughOnException() {},
        props: {},
      });
      const text = await answer.text();
      return { status: answer.status, text, mark: markOf(text), cache: answer.headers.get('cache-status') };
    };
  }

  /** All that isolates do behind their answers. */
  async idle(): Promise<void> {
    while (this.#waitUntil.length > 0) await Promise.all(this.#waitUntil.splice(0));
  }

  #stub(id: string): Stub {
    if (!this.asked.includes(id)) this.asked.push(id);
    const real = this.#objects.binding.get(id);
    return new Proxy(real, {
      get:
        (_, method: keyof Stub) =>
        async (...asked: unknown[]) => {
          await this.before(id, method);
          return (real[method] as (...given: unknown[]) => Promise<unknown>)(...asked);
        },
    });
  }
}
