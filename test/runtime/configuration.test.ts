import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { call } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { freePort } from '../support/ports.ts';
import { json, startUpstream } from '../support/scripted-upstream.ts';
import { emptyFolder, killAll, run, urlIn } from './node-gateway.ts';

/** `EX_CONFIG` of sysexits.h. */
const BAD_CONFIG = 78;
const FREE = { PORT: '0', ADMIN_PORT: '0' };
const isRoot = process.getuid?.() === 0;

afterEach(killAll);

function folderWith(file: string, content: string | Uint8Array): string {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, file), content);
  return cwd;
}

/** What is printed by a start that fails with a bad configuration. */
async function refusal(env: Readonly<Record<string, string>>, cwd = emptyFolder()): Promise<readonly string[]> {
  const running = run({ env: { ...FREE, ...env }, cwd });
  expect(await running.exited).toBe(BAD_CONFIG);
  expect(running.stdout()).toBe('');
  return running.stderr().split('\n').slice(0, -1);
}

async function addressOf(cwd: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const running = run({ cwd, env });
  return running.until(() => urlIn(running));
}

describe('a .env file', () => {
  it('is read where the process is started, and yields to the environment', async () => {
    const [fromFile, fromEnvironment] = [await freePort(), await freePort()];
    const cwd = folderWith('.env', `PORT=${fromFile}\nADMIN_PORT=0\n`);
    expect(await addressOf(cwd)).toBe(`http://127.0.0.1:${fromFile}`);
    expect(await addressOf(cwd, { PORT: String(fromEnvironment) })).toBe(`http://127.0.0.1:${fromEnvironment}`);
  });

  it('may begin with a byte order mark', async () => {
    const port = await freePort();
    expect(await addressOf(folderWith('.env', `\uFEFFPORT=${port}\r\nADMIN_PORT=0\r\n`))).toBe(
      `http://127.0.0.1:${port}`,
    );
  });

  it('is not hidden by an empty variable', async () => {
    const port = await freePort();
    const cwd = folderWith('.env', `PORT=${port}\nADMIN_PORT=0\n`);
    expect(await addressOf(cwd, { PORT: '' })).toBe(`http://127.0.0.1:${port}`);
  });

  it('that is a folder ends the start with one sentence', async () => {
    const cwd = emptyFolder();
    mkdirSync(join(cwd, '.env'));
    expect(await refusal({ NODE_ENV: 'production' }, cwd)).toEqual(['.env: expected a file, not a folder']);
  });

  it('that is not UTF-8 ends the start with one sentence', async () => {
    const cwd = folderWith('.env', Buffer.from('\uFEFFPORT=1', 'utf16le'));
    expect(await refusal({}, cwd)).toEqual(['.env: expected a file in UTF-8']);
  });

  it.skipIf(isRoot)('that nobody may read ends the start with one sentence', async () => {
    const cwd = folderWith('.env', 'PORT=1');
    chmodSync(join(cwd, '.env'), 0);
    expect(await refusal({}, cwd)).toEqual(['.env: expected a file that this user may read']);
  });
});

describe('a secret in a file', () => {
  it('opens what the same secret in a variable has sealed', async () => {
    const upstream = await startUpstream();
    upstream.on('GET /api/v2/subscription/', json(200, { id: 1, plan: 2, payment_method: null }));
    const [key, own] = [secret(), secret('of-this-process-and-its-sessions')];
    const accountWith = async (env: Readonly<Record<string, string>>) => {
      const running = run({
        env: { ...FREE, UPSTREAM_BASE_URL: upstream.url, ...env },
        cwd: folderWith('own', `${own}\n`),
      });
      const url = await running.until(() => urlIn(running));
      await call(url, { path: '/api/v2/subscription/', token: key });
      return running.until(() => running.records().find(({ status }) => status === 200)?.['account']);
    };
    expect(await accountWith({ SECRETS_FILE: 'own' })).toBe(await accountWith({ SECRETS: own }));
    await upstream.close();
  });

  it('is named by its variable where it is bad, and nothing that it says is printed', async () => {
    const cwd = folderWith('own', secret('short').slice(0, 31));
    expect(await refusal({ SECRETS_FILE: 'own', STORE_URL_FILE: 'none', SESSIONS: 'true' }, cwd)).toEqual([
      'SECRETS: expected entry 1 to be a secret of 32 characters or more',
      'STORE_URL_FILE: expected a file that is there',
    ]);
  });

  it('does not stand beside the variable itself', async () => {
    const cwd = folderWith('own', secret('of-a-file-beside-a-variable'));
    expect(await refusal({ SECRETS_FILE: 'own', SECRETS: secret('of-a-variable-beside-a-file') }, cwd)).toEqual([
      'SECRETS_FILE: expected nothing, since SECRETS is set too',
    ]);
  });

  it('that cannot be read is the only thing that is said to be bad', async () => {
    expect(await refusal({ SECRETS_FILE: '.', STORE_URL: 'redis://127.0.0.1:9', SESSIONS: 'true' })).toEqual([
      'SECRETS_FILE: expected a file, not a folder',
    ]);
    expect(
      await refusal({ STORE_URL_FILE: 'none', WORKERS: '2', SECRETS: secret('of-workers-without-store') }),
    ).toEqual(['STORE_URL_FILE: expected a file that is there']);
  });

  it('does not get into the environment of the process', async () => {
    const own = secret('of-a-file-and-not-of-a-process');
    const cwd = folderWith('own', own);
    writeFileSync(join(cwd, '.env'), 'SECRETS_FILE=own\nADMIN_PORT=0\nPORT=0\nLOG_LEVEL=warn\n');
    writeFileSync(join(cwd, 'app.mjs'), APP);
    const running = run({ cwd, command: [process.execPath, 'app.mjs'] });
    expect(await running.exited).toBe(0);
    expect(running.stdout()).toBe('own undefined false\n');
  });
});

/** Prints of the variables what is in the environment, and whether `.env` was there at the start. */
const APP = `
import { environmentAtStart, gatherVariables } from ${JSON.stringify(join(import.meta.dirname, '../../src/entry/node/variables.ts'))};
const { variables } = gatherVariables(process.env);
if (variables.SECRETS === undefined) process.exit(1);
console.log(process.env.SECRETS_FILE, process.env.SECRETS, 'SECRETS_FILE' in environmentAtStart);
`;

/** How often a start warns of times. */
const warned = async (env: Readonly<Record<string, string>>) => {
  const running = run({ env: { ...FREE, ...env } });
  await running.until(() => urlIn(running));
  return running.records().filter(({ msg }) => msg.startsWith('UPSTREAM_TIMEOUT_MS')).length;
};

describe('a start', () => {
  it('says which operation was meant', async () => {
    expect(await refusal({ CACHE_POLICY: '{"getSubscripton":{"fresh":1}}' })).toEqual([
      'CACHE_POLICY: expected only ids of operations, not "getSubscripton"',
    ]);
  });

  it('warns of an upstream call that has more time than its request', async () => {
    expect(await warned({ UPSTREAM_TIMEOUT_MS: '5001', REQUEST_TIMEOUT_MS: '5000' })).toBe(1);
    expect(await warned({ UPSTREAM_TIMEOUT_MS: '5000', REQUEST_TIMEOUT_MS: '5000' })).toBe(0);
  });

  it('in production takes no secret that is public', async () => {
    const SECRETS = 'for-this-machine-only-0123456789abcdef';
    expect(await refusal({ NODE_ENV: 'production', UPSTREAM_BASE_URL: 'http://127.0.0.1:9', SECRETS })).toEqual([
      'SECRETS: expected entry 1 to be a secret of your own, since NODE_ENV is production: this one is public',
    ]);
  });
});
