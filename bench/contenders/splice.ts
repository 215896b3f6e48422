import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { call, UNKEPT } from './calls.ts';
import { answer } from './plain-answers.ts';

/** The least that could make an account overview: four calls at once, their texts put together. */
const LEGS = Object.entries({
  subscription: '/api/v2/subscription/',
  payment_method: '/api/v2/payment/method/',
  notifications: '/api/v2/notification/?dismissed_at__isnull=True',
  referral_config: '/api/v2/referral/config/',
});

async function overviewFor(credential: string): Promise<Buffer> {
  const headers = ['authorization', credential, 'accept', 'application/json'];
  const sections = await Promise.all(
    LEGS.map(async ([name, path]) => `"${name}":${(await call({ method: 'GET', path, headers })).body.toString()}`),
  );
  return Buffer.from(`{"data":{${sections.join(',')}},"errors":[],"meta":{"complete":true}}`);
}

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => void overview(request, response));

async function overview({ headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const beganAt = performance.now();
  const body = await overviewFor(headers.authorization ?? '');
  answer(response, { status: 200, body, headers: UNKEPT, beganAt });
}

server.listen(Number(process.env['PORT']), '127.0.0.1');
