import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { killAll, type NodeGateway } from '../runtime/node-gateway.ts';
import { json, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { bodyOf, isOf, VersionedUpstream } from '../support/versioned-upstream.ts';
import { type Connection, connectToAll, gist, startTwo } from './workers.ts';

const LIMIT = 40;

describe('two workers without a store', () => {
  let upstream: VersionedUpstream;
  let gateway: NodeGateway;
  let [one, other]: Connection[] = [];

  beforeAll(async () => {
    upstream = new VersionedUpstream(await startUpstream());
    gateway = await startTwo(upstream.upstream.url, { RATE_LIMIT_PER_MINUTE: String(LIMIT) });
    [one, other] = await connectToAll(gateway);
  });

  afterAll(async () => {
    await Promise.all([one?.close(), other?.close()]);
    await killAll();
    await upstream.upstream.close();
  });

  it('see at once what was written through the other one', async () => {
    const token = secret();
    for (const at of [one, other, one, other])
      expect((await at!.ask('getReferralConfig', { token })).text).toBe(bodyOf('getReferralConfig', 1));
    expect(upstream.callsOf(token)).toHaveLength(2); // each has a copy of its own
    for (const [writer, reader] of [
      [one, other],
      [other, one],
    ]) {
      const version = upstream.versionOf(token) + 1;
      expect(gist(await writer!.ask('updateReferralConfig', { token }))).toBe('200');
      expect((await reader!.ask('getReferralConfig', { token })).text).toBe(bodyOf('getReferralConfig', version));
    }
  });

  it('give no copy of what is being written through the other one', async () => {
    const token = secret();
    for (const at of [one, other]) await at!.ask('getReferralConfig', { token });
    const held = upstream.holdNext(token, 'updateReferralConfig');
    const writing = one!.ask('updateReferralConfig', { token });
    await held.reached;
    const { headers } = await other!.ask('getReferralConfig', { token });
    expect(headers['cache-status']).toBe('portico; fwd=miss');
    held.release();
    expect(gist(await writing)).toBe('200');
  });

  it('carry out a purchase with one key once', async () => {
    const token = secret();
    const key = secret('idempotency');
    const held = upstream.holdNext(token, 'purchasePlan');
    const first = one!.ask('purchasePlan', { token, key });
    await held.reached;
    expect(gist(await other!.ask('purchasePlan', { token, key }))).toBe('409 idempotency_in_progress');
    held.release();
    const { text } = await first;
    const replayed = await other!.ask('purchasePlan', { token, key });
    expect(replayed).toMatchObject({ status: 201, text, headers: { 'idempotency-replayed': 'true' } });
    expect(upstream.callsOf(token, 'purchasePlan')).toHaveLength(1);
  });

  it('know each other’s refused credentials', async () => {
    const token = secret();
    for (const at of [one, other]) await at!.ask('getReferralConfig', { token });
    upstream.upstream.on((to) => isOf(token, to), json(401, { detail: 'Invalid token.' }));
    expect(gist(await one!.ask('getApiKey', { token }))).toBe('401 unauthenticated');
    expect(gist(await other!.ask('getReferralConfig', { token }))).toBe('401 unauthenticated');
  });

  it('count together, and never exceed a limit', async () => {
    const token = secret();
    const asked = [one, other].flatMap((at) =>
      Array.from({ length: LIMIT }, async () => gist(await at!.ask('getApiKey', { token }))),
    );
    const answers = await Promise.all(asked);
    expect(new Set(answers)).toEqual(new Set(['200', '429 rate_limited']));
    expect(answers.filter((answer) => answer === '200').length).toBeLessThanOrEqual(LIMIT);
    expect(upstream.callsOf(token).length).toBeLessThanOrEqual(LIMIT);
  });

  it('name an account by the same hash in the log, without SECRETS too', async () => {
    const token = secret();
    const headers = { 'X-Request-Id': 'of-one-account' };
    for (const at of [one, other]) await at!.ask('getReferralConfig', { token, headers });
    const lines = () => gateway.records().filter((record) => record['request_id'] === 'of-one-account');
    await gateway.until(() => (lines().length === 2 ? true : undefined));
    const [account] = lines().map((line) => line['account']);
    expect(account).toMatch(/^[\w-]{43}$/);
    expect(lines()[1]?.['account']).toBe(account);
  });
});
