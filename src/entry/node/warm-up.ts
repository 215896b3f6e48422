import { createApp, type Deps } from '../../app.ts';
import { noMetrics } from '../../core/metrics.ts';
import { allOverviews } from '../../gateway/overviews/index.ts';
import { MemoryStore } from '../../store/memory.ts';
import { exampleOf } from '../../upstream/example.ts';
import { matchPath } from '../../upstream/match.ts';
import type { Transport } from '../../upstream/transport.ts';

const ROUNDS = 3;
const CACHE_BYTES = 1_048_576;
const silent = () => undefined;

/**
 * Answers each overview a few times from made-up upstream answers before the port opens: schemas compile when they
 * first run, and the first user's overview would wait for that (10 of 130 ms). Shares nothing with the real app.
 */
export async function warmUp(deps: Deps): Promise<void> {
  const logger = { info: silent, warn: silent, error: silent, request: silent };
  for (let round = 0; round < ROUNDS; round++) {
    const app = createApp({
      ...deps,
      logger,
      metrics: noMetrics,
      transport: exampleTransport,
      store: new MemoryStore({ maxBytes: CACHE_BYTES }),
    });
    const headers = { Authorization: 'Token warm-up' };
    const requests = [...allOverviews, ...allOverviews].map(
      ({ path }) => new Request(`http://warm-up.invalid${path}`, { headers }),
    );
    await Promise.all(requests.map(async (request) => (await app.fetch(request, {})).text()));
  }
}

const exampleTransport: Transport = ({ path }) => {
  const [pathname = ''] = path.split('?', 1);
  const schema = matchPath(pathname)?.methods.get('GET')?.answer;
  return Promise.resolve({ status: 200, headers: {}, body: { text: JSON.stringify(schema ? exampleOf(schema) : {}) } });
};
