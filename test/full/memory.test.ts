import { readFileSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { FAULTS, GOOD, packed } from '../node/faults.ts';
import { call } from '../support/http.ts';
import { startNode } from '../support/process.ts';
import { json, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const LIMIT_BYTES = 5_242_880;
/** What one bad answer may take, in limits of a body. */
const ALLOWED = 3;
const AT_ONCE = 4;

/** What Linux knows of a process, in bytes: `VmRSS` is its memory now, `VmHWM` the most it ever was. */
const memoryOf = (pid: number, name: 'VmRSS' | 'VmHWM') => {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(found) * 1024;
};

test.each(['50 MB', 'chunks without end', 'a gzip bomb', '100,000 levels'])(
  'the memory of a gateway grows by no more than three body limits for %s',
  async (name) => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const { url, pid } = await startNode({
      UPSTREAM_BASE_URL: upstream.url,
      UPSTREAM_MAX_BODY_BYTES: String(LIMIT_BYTES),
      RATE_LIMIT_PER_MINUTE: '0',
      ADMIN_PORT: '0',
    });
    const ask = () => call(url, { path: '/api/v2/subscription/', token: secret() });
    // Code, caches and arenas that any traffic fills are not the fault's doing.
    for (const ordinary of [json(200, GOOD), packed(gzipSync(GOOD)), packed(Buffer.from('no gzip'))]) {
      upstream.on(() => true, ordinary);
      for (let asked = 0; asked < 30; asked++) await ask();
    }
    upstream.on(() => true, FAULTS.find((fault) => fault.name === name)!.what);
    const before = memoryOf(pid, 'VmRSS');
    for (const count of [1, AT_ONCE]) {
      writeFileSync(`/proc/${pid}/clear_refs`, '5'); // from now on `VmHWM` is the most since now
      const answers = await Promise.all(Array.from({ length: count }, ask));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([502]));
      expect((memoryOf(pid, 'VmHWM') - before) / LIMIT_BYTES).toBeLessThan(ALLOWED * count);
    }
  },
);
