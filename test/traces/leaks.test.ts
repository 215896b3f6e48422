import { expect, it } from 'vitest';
import { json, perCall, reset } from '../support/scripted-upstream.ts';
import { allOperations } from '../support/account-api.ts';
import { exampleRequest } from '../support/examples.ts';
import { goodAnswer } from '../support/marked.ts';
import { cardHolder, cardLast4, email, leaksIn, LEAK_MARK, secret, SECRET_FORMS } from '../support/secrets.ts';
import { openTraced } from './helpers.ts';

const OVERVIEW = '/bff/v1/account-overview';

it('no span holds a key, card, e-mail address, query, path or body, whatever became of its request', async () => {
  const { upstream, collector, call, told } = await openTraced();
  const failure = { code: LEAK_MARK, message: `${email()} ${cardHolder} ${cardLast4}` };
  upstream.on(
    () => true,
    perCall((to) => {
      if (to.target.includes('fails')) return json(503, failure);
      if (to.target.includes('breaks')) return reset();
      return to.target.includes('refused') ? json(409, [failure]) : goodAnswer(to, email());
    }),
  );
  const headers = { 'user-agent': LEAK_MARK, cookie: `a=${secret('cookie')}`, 'x-made-up': secret() };
  for (const { id } of allOperations)
    for (const query of ['', 'fails', 'breaks', 'refused']) {
      const { path, ...request } = exampleRequest(id);
      const asked = `${path}?x=${LEAK_MARK}${query}`;
      await call({ ...request, path: asked, token: secret(), headers });
    }
  await call({ path: `/no/such/${LEAK_MARK}?${email()}`, headers });
  await call({ path: `/api/v2/apikey/${LEAK_MARK}/`, headers });
  await call({ path: OVERVIEW, token: `${secret()}é` });
  await call({ path: `${OVERVIEW}?fields[${LEAK_MARK}]=x`, headers });
  const requests = [{ id: LEAK_MARK, path: `/api/v2/notification/?x=${LEAK_MARK}` }];
  await call({ path: '/bff/v1/batch', body: { requests }, headers });
  const spans = await told();
  expect(new Set(spans.map(({ facts }) => facts['portico.operation'])).size).toBeGreaterThan(allOperations.length);
  const text = collector.texts.join('\n');
  expect(leaksIn(text)).toEqual([]);
  for (const [what, form] of Object.entries(SECRET_FORMS))
    expect([what, form.exec(text)?.[0]]).toEqual([what, undefined]);
  expect(text).not.toMatch(/auth_91-a|\/12345/); // the ids in paths
});
