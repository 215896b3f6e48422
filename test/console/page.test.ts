import { globSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { expectCommonHeaders, expectProblem } from '../http/problem.ts';
import type { CallOptions } from '../support/http.ts';
import { openWorld, type World } from '../support/world.ts';
import { DATA } from './data.ts';

let world: World;

beforeEach(async () => {
  world = await openWorld({ ADMIN_HOST: 'gateway.internal' }, { hasAdmin: true });
});

const get = (path: string, options: Partial<CallOptions> = {}) => world.admin({ path, ...options });

const OURS = globSync(join(import.meta.dirname, '../../src/console/*.{js,css}'), {}).map((file) => basename(file));

describe('/console', () => {
  test('is a page that runs and asks for nothing but what is its own', async () => {
    const answer = await get('/console');
    expect(answer.status).toBe(200);
    expectCommonHeaders(answer);
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
    const policy = answer.headers['content-security-policy']?.split('; ');
    expect(policy?.toSorted()).toEqual(
      [
        "base-uri 'none'",
        "connect-src 'self'",
        "default-src 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        'img-src data:',
        "script-src 'self'",
        "style-src 'self'",
      ].toSorted(),
    );
    expect(answer.text).not.toMatch(/https?:|<script>|<style|\son\w+=|\sstyle=/);
  });

  test('is whole: all that it and its scripts refer to is there', async () => {
    const { text } = await get('/console/');
    const named = Array.from(text.matchAll(/(?:src|href)="(\/[^"]*)"/g), ([, path = '']) => path);
    const imported = OURS.map((name) => `/console/${name}`);
    for (const path of new Set([...named, ...imported])) {
      const answer = await get(path);
      expect([path, answer.status]).toEqual([path, 200]);
      expectCommonHeaders(answer);
      const type = path.endsWith('.css') ? 'text/css' : path.endsWith('.js') ? 'text/javascript' : 'text/';
      expect(answer.headers['content-type']).toContain(type);
    }
    expect(named.toSorted()).toEqual(['/console/console.css', '/console/console.js', '/metrics']);
  });

  test('takes GET and HEAD only, also of the data', async () => {
    expect(await get('/console', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    expect(await get(DATA, { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    for (const path of ['/console', DATA])
      expectProblem(await get(path, { method: 'POST' }), { status: 405, code: 'method_not_allowed', instance: path });
  });

  test('is nothing on the public listener', async () => {
    for (const path of ['/console', '/console/console.js', DATA])
      expectProblem(await world.call({ path }), { status: 404, code: 'unknown_endpoint', instance: path });
  });

  test('has no line in the log and is in no metric', async () => {
    await get('/console');
    expect(world.gateway.lines.filter(({ msg }) => msg === 'request')).toEqual([]);
    expect((await get('/metrics')).text).not.toMatch(/portico_requests_total\{[^}]*\} [1-9]/);
  });
});

const PATHS = ['/console', '/console/console.js', DATA] as const;

describe.each(PATHS)('%s', (path) => {
  const port = 8788;

  test.each([
    `127.0.0.1:${port}`,
    `10.1.2.3:${port}`,
    `[::1]:${port}`,
    '[fd00::1]',
    'localhost',
    `LocalHost:${port}`,
    `gateway.internal:${port}`,
    'GATEWAY.internal',
  ])('is shown at %s', async (host) => {
    expect(await get(path, { method: 'HEAD', headers: { host } })).toMatchObject({ status: 200 });
  });

  test.each([
    'rebound.example',
    `rebound.example:${port}`,
    '127.0.0.1.rebound.example',
    'localhost.rebound.example',
    'rebound-localhost',
    'gateway.internal.rebound.example',
    '1.2.3.4.nip.io',
  ])('is refused at %s, which may be a name that was made to lead here', async (host) => {
    const answer = await get(path, { headers: { host } });
    expectProblem(answer, { status: 403, code: 'forbidden', instance: path });
  });

  test('may not be read by a page of another site', async () => {
    for (const site of ['cross-site', 'same-site']) {
      const headers = { 'sec-fetch-site': site, 'sec-fetch-mode': 'cors' };
      expectProblem(await get(path, { headers }), { status: 403, code: 'forbidden', instance: path });
    }
    const headers = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' };
    expect(await get(path, { method: 'HEAD', headers })).toMatchObject({ status: 200 });
  });
});

test('a link on another site may lead to the page', async () => {
  const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
  expect(await get('/console', { headers })).toMatchObject({ status: 200 });
  // In a frame of that site it would take the place of a page.
  expect(await get(DATA, { headers })).toMatchObject({ status: 403 });
});
