import { afterAll, describe, expect, test } from 'vitest';
import { accountOverview } from '../support/account-api.ts';
import { EXPECTED, isReached } from './expected.ts';
import { faults } from './faults.ts';
import { gist, openFaultWorld, OVERVIEW, READ, WRITE } from './helpers.ts';
import { FaultTable } from './table.ts';
import type { OverviewBody } from '../overviews/helpers.ts';

const table = new FaultTable();

afterAll(() =>
  console.log(`Fault matrix: what the client got, and how often the upstream was called\n\n${String(table)}`),
);

const ON_ERROR_ONLY = { CACHE_POLICY: JSON.stringify({ [READ]: { fresh: 0, stale: 0, on_error: 3600 } }) };

const OTHER_SECTIONS = Object.keys(accountOverview.sections).filter((name) => name !== 'notifications');

// Side by side: some wait for their deadline.
describe.concurrent.each(faults.map((fault) => [fault.name, fault] as const))('%s', (name, fault) => {
  test('a read gets the documented answer in time, and nothing bad is kept', async ({ onTestFinished }) => {
    const world = await openFaultWorld(fault, onTestFinished);
    const answer = await world.askStruck(READ);
    const text = `${gist(answer)} ${await world.count(answer)}`;
    table.add(name, 'read', { text, overshootMs: answer.overshootMs });
    expect(text).toBe(EXPECTED.read(fault));
    expect((await world.lineOf(answer)).reason).toBe(fault.reason);
    await world.expectCleanConnections(answer);
    if (fault.holdsAccount) expect(await world.expectHeld()).toMatchObject({ status: 429 });
    else if (answer.status !== 200) await world.expectNothingKept();
    else expect(await world.ask(READ)).toMatchObject({ status: 200, text: answer.text });
  });

  test('a read with an older copy gets that, but for refusals', async ({ onTestFinished }) => {
    const world = await openFaultWorld(fault, onTestFinished, ON_ERROR_ONLY);
    const older = await world.ask(READ);
    expect(older.status).toBe(200);
    const answer = await world.askStruck(READ);
    const isOlder = answer.text === older.text;
    const text = `${gist(answer)}${isOlder ? ' older copy' : ''} ${await world.count(answer)}`;
    table.add(name, 'stale', { text, overshootMs: answer.overshootMs });
    expect(text).toBe(EXPECTED.stale(fault));
    expect((await world.lineOf(answer)).reason).toBe(fault.reason);
    if (isOlder) expect(answer.headers['cache-status']).toMatch(/^portico; hit; ttl=-\d+$/);
    await world.expectCleanConnections(answer);
    if (fault.holdsAccount) expect(await world.expectHeld()).toMatchObject({ status: 200, text: older.text });
    else await world.expectNothingKept();
  });

  test('an overview goes without the section, but for refusals', async ({ onTestFinished }) => {
    const world = await openFaultWorld(fault, onTestFinished);
    if (!isReached(fault)) await world.ask(READ, { path: `${OVERVIEW}?sections=${OTHER_SECTIONS.join(',')}` });
    const answer = await world.askStruck(READ, OVERVIEW);
    const { data, errors, meta } = answer.json as OverviewBody;
    const failed = errors.map(({ code }) => String(code));
    const outcome = answer.status === 200 ? (meta.complete ? ' complete' : ` null, ${failed.join()}`) : '';
    const text = `${gist(answer)}${outcome} ${await world.count(answer)}`;
    table.add(name, 'overview leg', { text, overshootMs: answer.overshootMs });
    expect(text).toBe(EXPECTED.leg(fault));
    if (answer.status === 200) {
      for (const section of OTHER_SECTIONS) expect(data[section]).toHaveProperty('id');
      expect(meta.sections['notifications']).toMatchObject({ state: meta.complete ? 'fresh' : 'failed' });
      if (!meta.complete) expect(data['notifications']).toBeNull();
    }
    await world.expectCleanConnections(answer);
  });

  test('a purchase is sent once at most, and says so when its outcome is unknown', async ({ onTestFinished }) => {
    const world = await openFaultWorld(fault, onTestFinished);
    const answer = await world.askStruck(WRITE);
    const text = `${gist(answer)} ${await world.count(answer)}`;
    table.add(name, 'purchase', { text, overshootMs: answer.overshootMs });
    expect(text).toBe(EXPECTED.purchase(fault));
    await world.expectCleanConnections(answer);
    if (fault.holdsAccount) expect(await world.expectHeld()).toMatchObject({ status: 429 });
    else await world.expectNothingKept();
    expect(answer.calls.length).toBeLessThanOrEqual(1);
  });
});
