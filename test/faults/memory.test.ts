import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { faults } from './faults.ts';
import { READ } from './helpers.ts';
import { killAll, startNode } from '../runtime/node-gateway.ts';
import { call } from '../support/http.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { bytes, httpResponse, json, reply, startUpstream, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const LIMIT_BYTES = 5_242_880;
/** contract.md allows one bad answer three times the limit of a body. */
const ALLOWED = 3;
const AT_ONCE = 4;

/** What Linux knows of a process, in bytes: `VmRSS` is its memory now, `VmHWM` the most it ever was. */
const memoryOf = (pid: number, name: 'VmRSS' | 'VmHWM') => {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(found) * 1024;
};

/** From then on `VmHWM` is the most since now. */
const forgetPeak = (pid: number) => writeFileSync(`/proc/${pid}/clear_refs`, '5');

const packed = (body: Uint8Array): Step => {
  const headers = { 'Content-Encoding': 'gzip', 'Content-Length': String(body.length) };
  return reply(bytes(httpResponse(200, '', headers)), bytes(body));
};

/** Code, caches and arenas that any traffic fills are not the fault's doing. */
const ORDINARY: readonly (readonly [times: number, answer: Step])[] = [
  [100, json(200, bodyOf(READ, 1))],
  [5, packed(gzipSync(bodyOf(READ, 1)))],
  [5, packed(Buffer.from('no gzip'))],
];

const figures: string[] = [];

afterEach(killAll);
afterAll(() => console.log(`Memory that bad answers cost, in body limits of 5 MB\n\n${figures.join('\n')}`));

const LARGE = ['50 MB', 'endless chunks', 'gzip bomb', '100,000 levels deep'];

describe.skipIf(!existsSync('/proc/self/clear_refs'))('the memory of a gateway', () => {
  test.each(LARGE)('grows by no more than three body limits for %s', async (name) => {
    const upstream = await startUpstream();
    const { url, pid } = await startNode({
      UPSTREAM_BASE_URL: upstream.url,
      UPSTREAM_MAX_BODY_BYTES: String(LIMIT_BYTES),
      RATE_LIMIT_PER_MINUTE: '0',
      ADMIN_PORT: '0',
    });
    const ask = () => call(url, { path: '/api/v2/notification/', token: secret() });
    for (const [times, answer] of ORDINARY) {
      upstream.on(callOf(READ), answer);
      for (let asked = 0; asked < times; asked++) await ask();
    }
    const { what } = faults.find((fault) => fault.name === name)!;
    if (typeof what === 'string') throw new Error(`${name} has no bytes`);
    upstream.on(callOf(READ), what(''));

    const before = memoryOf(pid, 'VmRSS');
    const growthOf = async (count: number) => {
      forgetPeak(pid);
      const answers = await Promise.all(Array.from({ length: count }, ask));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 502));
      return (memoryOf(pid, 'VmHWM') - before) / LIMIT_BYTES;
    };
    const [one, more] = [await growthOf(1), await growthOf(AT_ONCE)];
    figures.push(`${name}: ${one.toFixed(1)} for one, ${more.toFixed(1)} for ${AT_ONCE} at once`);
    expect(one).toBeLessThan(ALLOWED);
    expect(more).toBeLessThan(ALLOWED * AT_ONCE);
    await upstream.close();
    upstream.assertNoUnexpected();
  });
});
