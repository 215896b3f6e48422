import { Registry } from 'prom-client';
import { sharedStoreMetrics } from '../../src/entry/node/metrics/store.ts';
import { json } from '../support/scripted-upstream.ts';
import { exampleInput } from '../support/examples.ts';
import { secret } from '../support/secrets.ts';
import type { AtEnd } from '../support/world.ts';
import { exposition, type Scraped } from './exposition.ts';
import { openMeasured } from './helpers.ts';

/** What a gateway with a shared store tells after some answers of all kinds. */
export async function scrapeEverything(atEnd: AtEnd): Promise<Scraped> {
  const { ask, call, upstream, admin } = await openMeasured({}, { atEnd });
  await ask('getSubscription');
  await ask('getSubscription');
  upstream.on(`GET ${exampleInput('getSubscription').path}`, json(500, '{}'));
  await ask('getSubscription', { token: secret() });
  await ask('getSubscription', { headers: { Authorization: 'none' } });
  await call({ path: '/nowhere' });
  const { text } = await admin({ path: '/metrics' });
  return exposition(`${text}${await scrapeOfStore()}`);
}

/** What there is only where instances share a store. */
function scrapeOfStore(): Promise<string> {
  const { onCommand, instruments } = sharedStoreMetrics(
    () => true,
    () => 0,
  );
  onCommand('read', 'good', 1);
  onCommand('read', 'failed', 100);
  const registry = new Registry();
  for (const one of instruments) registry.registerMetric(one);
  return registry.metrics();
}
