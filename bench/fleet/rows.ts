import { Client, type Wanted } from '../harness/client.ts';
import { start } from '../harness/processes.ts';
import { kinds } from './kinds.ts';
import { startWorkerd } from './workerd.ts';

const MANY = 20;

/** Looks over the shoulder of the objects: what SQLite says that each statement has written, and alarms that were set. */
const FRONT = `
import worker, { Account } from './worker.js';
const seen = { rows: 0, alarms: 0, calls: 0 };
export class Counted extends Account {
  constructor(ctx, env) {
    const { sql } = ctx.storage;
    const [exec, setAlarm] = [sql.exec.bind(sql), ctx.storage.setAlarm.bind(ctx.storage)];
    sql.exec = (...args) => {
      const cursor = exec(...args);
      const rows = cursor.toArray();
      seen.rows += cursor.rowsWritten;
      return { toArray: () => rows };
    };
    ctx.storage.setAlarm = (at) => (seen.alarms++, setAlarm(at));
    super(ctx, env);
  }
}
for (const name of ['read', 'swap', 'keep', 'count']) {
  Counted.prototype[name] = function (...args) {
    seen.calls++;
    return Account.prototype[name].apply(this, args);
  };
}
export default {
  fetch: (request, env, ctx) => request.url.endsWith('/seen') ? Response.json(seen) : worker.fetch(request, env, ctx),
};`;

interface Seen {
  readonly calls: number;
  readonly rows: number;
  readonly alarms: number;
}

/** What one request of each kind asks of the object of its account, and what the object writes. */
export async function benchRows(): Promise<void> {
  const upstream = await start({ script: 'bench/harness/failing-upstream.ts', core: 1 });
  const worker = await startWorkerd({ upstream: upstream.url, objects: 'Counted', front: FRONT });
  const client = new Client(worker.url, 1);
  console.log(`\n| ${MANY} of each, one after the other | calls of the object | rows written | alarms set |`);
  console.log('| --- | --- | --- | --- |');
  for (const [name, wanted] of kinds) console.log(`| ${name} | ${(await look(client, wanted)).join(' | ')} |`);
  await client.close();
  await Promise.all([worker.stop(), upstream.stop()]);
}

async function look(client: Client, wanted: (i: number) => Wanted): Promise<readonly number[]> {
  const before = await seenBy(client);
  for (let i = 0; i < MANY; i++) {
    const { status, text } = await client.send(wanted(i));
    if (status !== 200) throw new Error(`${status} ${text}`);
  }
  const after = await seenBy(client);
  return (['calls', 'rows', 'alarms'] as const).map((name) => (after[name] - before[name]) / MANY);
}

const seenBy = async (client: Client) => JSON.parse((await client.send({ path: '/seen' })).text) as Seen;
