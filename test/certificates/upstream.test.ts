import { expect, test } from 'vitest';
import { firstAuthority as first, ofWrongPurpose, secondAuthority as second } from '../support/authorities.ts';
import { openGateway, startTlsUpstream, WRITE } from './helpers.ts';

const MUTUAL = { ...first.server, ca: first.ca, requestCert: true, rejectUnauthorized: true };

test('an authority of the operator’s is trusted, and no other one for that', async () => {
  const upstream = await startTlsUpstream();
  const authorities = { first: first.ca, both: second.ca + first.ca, leaf: first.server.cert, other: second.ca };
  for (const [name, ca] of Object.entries(authorities)) {
    const { ask, reasons } = await openGateway(upstream.url, { texts: { ca } });
    const status = name === 'other' ? 502 : 200;
    expect([name, (await ask()).status]).toEqual([name, status]);
    expect(reasons()).toEqual([status === 200 ? undefined : 'tls']);
  }
  const { ask } = await openGateway(upstream.url);
  expect((await ask()).status).toBe(502);
});

test('a certificate for another purpose is not trusted', async () => {
  const upstream = await startTlsUpstream(ofWrongPurpose);
  const { ask, reasons } = await openGateway(upstream.url, { texts: { ca: ofWrongPurpose.cert } });
  expect((await ask()).status).toBe(502);
  expect(reasons()).toEqual(['tls']);
});

test('an upstream that wants a certificate is shown it', async () => {
  const upstream = await startTlsUpstream(MUTUAL);
  const shows = await openGateway(upstream.url, { texts: { ca: first.ca, ...first.client } });
  expect((await shows.ask()).status).toBe(200);
  expect((await shows.ask(WRITE)).status).toBe(201);
  expect(upstream.calls.map(({ shown }) => shown)).toEqual(['first client', 'first client']);
  const hides = await openGateway(upstream.url, { texts: { ca: first.ca } });
  expect((await hides.ask()).status).toBe(502);
  expect(upstream.calls).toHaveLength(2);
});
