import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Recordings } from '../../src/entry/node/console/recordings.ts';
import { LOG_FOLDER, type TestGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';

export const DATA = '/console/data';

/** What the console of a gateway shows. It is kept for test/logs, which looks for secrets in it. */
export async function shownBy({ adminUrl = '' }: TestGateway, since = 0): Promise<ReturnType<Recordings['shown']>> {
  const { status, text } = await call(adminUrl, { path: `${DATA}?since=${since}` });
  expect(status).toBe(200);
  mkdirSync(LOG_FOLDER, { recursive: true });
  appendFileSync(join(LOG_FOLDER, `${process.pid}.console`), `${text}\n`);
  return JSON.parse(text) as ReturnType<Recordings['shown']>;
}
