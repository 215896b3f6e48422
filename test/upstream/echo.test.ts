import { describe, expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const PATH = '/api/v2/subscription/';

const stage = useWorld();

/** The text of the problem for a body with something in it that no client is to see. */
const textFor = async (body: unknown, token = secret()) => {
  stage.upstream.on(`GET ${PATH}`, json(400, body));
  const answer = await stage.call({ path: PATH, token });
  expect(answer.status).toBe(400);
  return answer.text;
};

describe('what the upstream says again', () => {
  const PLACES: readonly (readonly [string, (said: string) => unknown])[] = [
    ['a detail', (said) => ({ detail: `Not ${said}, or (${said}).` })],
    ['an array', (said) => [{ message: said, code: 'invalid' }]],
    ['a field', (said) => ({ label: [{ message: `${said}?`, code: 'invalid' }] })],
    ['a bare string', (said) => JSON.stringify(said)],
    ['the name of a field', (said) => ({ [said]: ['Wrong.'] })],
    ['a code', (said) => ({ detail: 'Wrong.', code: said })],
    ['a message that is cut in the middle of it', (said) => ({ detail: 'x'.repeat(485) + said })],
  ];

  test.each(PLACES)('of the credential in %s does not reach the client', async (_, place) => {
    const token = secret();
    expect(await textFor(place(token), token)).not.toContain(token.slice(0, 12));
  });

  test.each([8, 31, 32, 33, 64, 4_096])('of a credential of %i characters is concealed to its end', async (length) => {
    const token = secret().padEnd(length, 'Z').slice(0, length);
    expect(await textFor({ detail: `Not ${token}, or (${token}).` }, token)).toContain('"Not …, or (…)."');
  });

  test.each(PLACES)('of the address of the upstream in %s does not reach the client', async (_, place) => {
    const { host, origin } = new URL(stage.upstream.url);
    for (const said of [`${origin}/x`, host]) expect(await textFor(place(said))).not.toContain(host.slice(0, 14));
  });

  test('of the name of the upstream in any case of letters does not reach the client', async () => {
    const { upstream } = stage;
    const gateway = await startGateway(upstream.url.replace('127.0.0.1', 'localhost'));
    onTestFinished(() => gateway.close());
    const detail = 'No route to LOCALHOST, http://Localhost/x or localHost:80.';
    upstream.on(`GET ${PATH}`, json(400, { detail }));
    const { text } = await call(gateway.url, { path: PATH, token: secret() });
    expect(text).toContain('"No route to …, http://…/x or …:80."');
  });

  test('of the name of the upstream, without its port, does not reach the client', async () => {
    const { hostname } = new URL(stage.upstream.url);
    expect(await textFor({ detail: `No route from ${hostname}.` })).not.toContain(hostname);
  });
});
