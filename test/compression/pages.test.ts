import { expect, test } from 'vitest';
import { DAY, openSessions, byCookie, OWN_PAGE } from '../sessions/helpers.ts';
import { json } from '../support/scripted-upstream.ts';
import { openWorld } from '../support/world.ts';
import { expectPacked, receive } from './bytes.ts';
import { MARK } from './helpers.ts';

test.each(['/openapi.json', '/docs/swagger-ui-bundle.js', '/docs/swagger-ui.css', '/problems'])(
  '%s is compressed',
  async (path) => {
    const { gateway } = await openWorld();
    expectPacked(await receive(gateway.url, { path }, 'gzip'), await receive(gateway.url, { path }));
  },
);

test('metrics are compressed, and the same', async () => {
  const { gateway } = await openWorld({}, { hasAdmin: true });
  const answer = await receive(gateway.adminUrl ?? '', { path: '/metrics' }, 'gzip');
  expect(answer.headers).toMatchObject({
    'content-encoding': 'gzip',
    'content-length': String(answer.bytes.length),
    'content-type': expect.stringContaining('text/plain'),
  });
  expect(answer.text).toContain('portico_build_info');
});

test('an answer that prolongs a session is compressed like others', async () => {
  const { gateway, upstream, signIn, advance } = await openSessions();
  const path = '/api/v2/subscription/';
  upstream.on(`GET ${path}`, json(200, { x: MARK }));
  const asked = byCookie(await signIn(), { path, headers: OWN_PAGE });
  advance(DAY + 1);
  const packed = await receive(gateway.url, asked, 'gzip');
  expect(packed.headers['set-cookie']).toHaveLength(1);
  expectPacked(packed, await receive(gateway.url, asked));
});
