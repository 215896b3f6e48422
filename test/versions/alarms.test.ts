import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bundleOf, expectNoComplaint, newOrder, open } from './isolates.ts';
import { DIRECTIONS } from './versions.ts';

/** What is kept ends when it was kept for long, and the alarm of each object is due. */
function age(folder: string): void {
  for (const [name, database] of databasesIn(folder)) {
    if (name === 'metadata.sqlite') database.exec('UPDATE _cf_ALARM SET scheduled_time = 1');
    else
      database.exec(
        `UPDATE _cf_METADATA SET value = 1 WHERE key = 1; UPDATE kept SET until = 1 WHERE kind <> 'versions'`,
      );
    database.close();
  }
}

/** How many rows all objects have that are over. */
function overIn(folder: string): number {
  let count = 0;
  for (const [name, database] of databasesIn(folder)) {
    const hasRows =
      name !== 'metadata.sqlite' && database.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'kept'`).get();
    if (hasRows)
      count += Number(database.prepare('SELECT COUNT(*) AS count FROM kept WHERE until = 1').get()?.['count']);
    database.close();
  }
  return count;
}

const databasesIn = (folder: string) =>
  readdirSync(join(folder, 'portico'))
    .filter((name) => name.endsWith('.sqlite'))
    .map((name) => [name, new DatabaseSync(join(folder, 'portico', name))] as const);

describe('objects whose time is over', () => {
  test.each(DIRECTIONS)('of %s are swept by the alarms of %s', async (before, after) => {
    const isolates = await open(before);
    onTestFinished(() => isolates.close());
    const order = newOrder();
    expect(await isolates.gist(isolates.urls[0]!, 'purchasePlan', order)).toBe('201 2');
    await isolates.prime(isolates.urls[0]!, 'getSubscription', order.token);
    await isolates.fleet.kill();
    age(isolates.fleet.objects);
    expect(overIn(isolates.fleet.objects)).toBeGreaterThan(1);
    await isolates.restart(undefined, [await bundleOf(after)]);
    await expect.poll(() => overIn(isolates.fleet.objects), { timeout: 20_000, interval: 100 }).toBe(0);
    expect(await isolates.gist(isolates.urls[0]!, 'purchasePlan', order)).toBe('201 3'); // its day is over
    expectNoComplaint(isolates);
  });
});
