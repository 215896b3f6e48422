import { benchCached } from './cached.ts';
import { benchOverview } from './overview.ts';

await benchOverview();
await benchCached();
