import { unlinkSync } from 'node:fs';
import { expect, onTestFinished, test, vi } from 'vitest';
import { WatchedTls } from '../../src/entry/node/certificates.ts';
import { barrier } from '../support/barrier.ts';
import { firstAuthority as first, ofWrongPurpose, secondAuthority as second } from '../support/authorities.ts';
import { keepingLogger, type LogLine } from '../support/gateway.ts';
import { folderWith, openGateway, refuse, startTlsUpstream, WRITE } from './helpers.ts';

const MUTUAL = { ...first.server, ca: first.ca, requestCert: true, rejectUnauthorized: true };

const FILES = { ca: first.ca, cert: first.client.cert, key: first.client.key };

test('an authority of the operator’s is trusted, and no other one for that', async () => {
  const upstream = await startTlsUpstream();
  const folder = folderWith({ ca: first.ca, both: second.ca + first.ca, other: second.ca, leaf: first.server.cert });
  for (const [name, status] of Object.entries({ ca: 200, both: 200, leaf: 200, other: 502 })) {
    const { ask, reasons } = await openGateway(upstream.url, { files: { ca: folder.at(name) } });
    expect([name, (await ask()).status]).toEqual([name, status]);
    expect(reasons()).toEqual([status === 200 ? undefined : 'tls']);
  }
  const { ask, warnings } = await openGateway(upstream.url);
  expect((await ask()).status).toBe(502);
  expect(warnings().map(({ msg }) => msg)).toEqual(['the upstream fails']);
});

test('a certificate for another purpose is not trusted', async () => {
  const upstream = await startTlsUpstream(ofWrongPurpose);
  const { files } = folderWith({ ca: ofWrongPurpose.cert });
  const { ask, warnings } = await openGateway(upstream.url, { files: { ca: files.ca } });
  expect((await ask()).status).toBe(502);
  expect(warnings()).toMatchObject([{ reason: 'tls', errno: 'INVALID_PURPOSE', msg: 'the upstream fails' }]);
});

test('an upstream that wants a certificate is shown it', async () => {
  const upstream = await startTlsUpstream(MUTUAL);
  const { files } = folderWith(FILES);
  const shows = await openGateway(upstream.url, { files });
  expect((await shows.ask()).status).toBe(200);
  expect((await shows.ask(WRITE)).status).toBe(201);
  expect(upstream.calls.map(({ shown }) => shown)).toEqual(['first client', 'first client']);
  const hides = await openGateway(upstream.url, { files: { ca: files.ca } });
  expect((await hides.ask()).status).toBe(502);
  expect(upstream.calls).toHaveLength(2);
});

test('new files are used for new connections, and a call under way ends on its old one', async () => {
  const upstream = await startTlsUpstream({ ...MUTUAL, ca: first.ca + second.ca });
  const { swap, files } = folderWith(FILES);
  const { ask, told } = await openGateway(upstream.url, { files });
  expect((await ask()).status).toBe(200);
  const at = barrier();
  upstream.holdAll(() => at.arrive());
  const slow = ask();
  await at.reached;
  swap({ ca: second.ca, cert: second.client.cert, key: second.client.key });
  upstream.server.setSecureContext({ ...second.server, ca: first.ca + second.ca });
  await vi.waitFor(() => expect(told).toMatchObject([{ level: 'info' }]));
  upstream.holdAll(undefined);
  expect((await ask()).status).toBe(200);
  at.release();
  expect((await slow).status).toBe(200);
  expect(upstream.calls.map(({ shown }) => shown)).toEqual(['first client', 'first client', 'second client']);
  await vi.waitFor(async () => expect(await upstream.open()).toBe(1));
});

test('a file that still changes from one look to the next is being written, and is read when it stays as it is', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { write, files } = folderWith({ ca: first.ca });
  const told: LogLine[] = [];
  const tls = new WatchedTls('UPSTREAM', { ca: files.ca }, { logger: keepingLogger(told), refuse });
  onTestFinished(() => tls.close());
  const before = tls.secureContext;
  for (const text of [second.ca, second.ca + first.ca.slice(0, 200), second.ca + first.ca]) {
    write('ca', text);
    vi.advanceTimersByTime(10_000);
    expect([tls.secureContext, told]).toEqual([before, []]);
  }
  vi.advanceTimersByTime(10_000);
  expect(told).toMatchObject([{ level: 'info' }]);
  expect(tls.secureContext).not.toBe(before);
});

test('files that have become unusable are warned of once each time, and the old ones are used until they are good', async () => {
  const upstream = await startTlsUpstream(MUTUAL);
  const { write, files } = folderWith(FILES);
  const { ask, told } = await openGateway(upstream.url, { files });
  const badly = [
    ['UPSTREAM_CERT_FILE', () => write('cert', 'no PEM')],
    ['UPSTREAM_CERT_FILE', () => unlinkSync(files.cert)],
    ['UPSTREAM_KEY_FILE', () => write('cert', second.client.cert)],
  ] as const;
  for (const [at, [variable, spoil]] of badly.entries()) {
    spoil();
    await vi.waitFor(() => expect(told).toHaveLength(at + 1));
    expect(told[at]).toMatchObject({ level: 'warn', variable, msg: expect.stringContaining('the old one still is') });
    expect((await ask()).status).toBe(200);
  }
  write('cert', first.client.cert);
  await vi.waitFor(() => expect(told.at(-1)?.level).toBe('info'));
  expect(told).toHaveLength(badly.length + 1);
  expect((await ask()).status).toBe(200);
});
