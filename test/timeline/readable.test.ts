import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { readable } from '../../src/entry/node/readable.ts';

const TIME = '2026-06-09T18:50:08.101Z';
const HEAD = /^\[\d\d:\d\d:08\.101\] /;

const read = (fields: Readonly<Record<string, unknown>>): string => {
  const text = stripVTControlCharacters(readable(JSON.stringify({ level: 'info', time: TIME, ...fields })));
  expect(text).toMatch(HEAD);
  expect(text.endsWith('\n')).toBe(true);
  return text.replace(HEAD, '').trimEnd();
};

const REQUEST = {
  msg: 'request',
  request_id: 'a',
  trace_id: '12345678123456781234567812345678',
  method: 'GET',
  route: '/bff/v1/account-overview',
  status: 200,
  duration_ms: 12.3,
  account: 'hash',
  client: 'hash',
  cache: 'miss',
  upstream_calls: 4,
  upstream_ms: 40.1,
};

test('a terminal gets a short line a request', () => {
  expect(read(REQUEST)).toBe('INFO: 200 GET /bff/v1/account-overview 12.3 ms miss');
  expect(read({ ...REQUEST, level: 'error', status: 502, code: 'upstream_unreachable', reason: 'refused' })).toBe(
    'ERROR: 502 GET /bff/v1/account-overview 12.3 ms miss upstream_unreachable refused',
  );
  expect(read({ ...REQUEST, failed: ['a', 'b'], stale: ['c'] })).toBe(
    'INFO: 200 GET /bff/v1/account-overview 12.3 ms miss failed: ["a","b"] stale: ["c"]',
  );
});

test('other lines have all that they say', () => {
  expect(read({ msg: 'listening', url: 'http://127.0.0.1:8787' })).toBe('INFO: listening http://127.0.0.1:8787');
  expect(read({ level: 'warn', msg: 'the upstream fails', reason: 'dns', host: 'a.test', errno: 'ENOTFOUND' })).toBe(
    'WARN: the upstream fails dns a.test ENOTFOUND',
  );
});
