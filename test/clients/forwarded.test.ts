import { expect, test } from 'vitest';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { openWorld } from '../support/world.ts';

const PAGE = { count: 30, next: '/api/v2/notification/?page=2', previous: null, results: [] };

async function open(env: Readonly<Record<string, string>>) {
  const world = await openWorld(env);
  world.upstream.on('GET /api/v2/notification/', json(200, PAGE));
  const ask = async (headers: Readonly<Record<string, string>>) => {
    const options = {
      path: '/api/v2/notification/',
      token: secret(),
      headers: { Host: 'gateway.example', ...headers },
    };
    const { next } = (await world.call(options)).json as { next: string };
    return next.slice(0, next.indexOf('/api'));
  };
  return ask;
}

const TRUSTED = { TRUSTED_PROXIES: '127.0.0.1' };

test('links have the scheme that a trusted proxy names', async () => {
  const ask = await open(TRUSTED);
  expect(await ask({})).toBe('http://gateway.example');
  expect(await ask({ 'X-Forwarded-Proto': 'https' })).toBe('https://gateway.example');
  expect(await ask({ Forwarded: 'for=198.51.100.7;proto=https' })).toBe('http://gateway.example');
  expect(await ask({ 'X-Forwarded-Proto': 'https://evil.example/#' })).toBe('http://gateway.example');
});

test('PUBLIC_URL counts before it', async () => {
  const ask = await open({ ...TRUSTED, PUBLIC_URL: 'http://public.example' });
  expect(await ask({ 'X-Forwarded-Proto': 'https' })).toBe('http://public.example');
});

test('links do not have what anybody else names', async () => {
  const ask = await open({ TRUSTED_PROXIES: '10.0.0.0/8' });
  expect(await ask({ 'X-Forwarded-Proto': 'https' })).toBe('http://gateway.example');
});
