import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { freePort } from './free-port.ts';

// The pictures of the README: `npm run pictures`. Chromium has to be installed; `CHROMIUM` names its file.

const ROOT = new URL('../', import.meta.url).pathname;
const PICTURES = `${ROOT}docs/pictures`;
const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const children: ChildProcess[] = [];
const SIZE = { viewport: { width: 1120, height: 520 } };
const KEY = 'sandbox-paid-key';

/** Starts a script of ours, and resolves when it has printed the words. */
async function start(file: string, words: RegExp, env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [file], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  let printed = '';
  for await (const text of child.stdout.setEncoding('utf8')) {
    printed += String(text);
    const found = words.exec(printed);
    if (found === null) continue;
    child.stdout.resume();
    return found[1] ?? '';
  }
  throw new Error(`${file} has ended: ${printed}`);
}

async function open(browser: Browser, url: string, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext({ locale: 'en-US', timezoneId: 'UTC', reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  await page.goto(url);
  return page;
}

async function ofTheExample(browser: Browser): Promise<void> {
  const words = /The page is at (http:\S+)/;
  const address = await start('scripts/example.ts', words, { EXAMPLE_PORT: '0' });
  const page = await open(browser, address, SIZE);
  await page.getByLabel('Another key').fill(KEY);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('heading', { name: 'Your account' }).waitFor();
  await page.waitForLoadState('networkidle');
  await page.screenshot({ path: `${PICTURES}/example.png` });
}

async function ofTheConsole(browser: Browser): Promise<void> {
  const [port, sandbox, admin] = [await freePort(), await freePort(), await freePort()];
  const ports = { PORT: String(port), SANDBOX_PORT: String(sandbox), ADMIN_PORT: String(admin) };
  await start('src/entry/node.ts', /(listening)/, { ...ports, SLOW_MS: '400' });
  const read = (path: string) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { Authorization: `Token ${KEY}`, 'Cache-Control': 'no-cache' },
    });
  const fault = (input: object) =>
    fetch(`http://127.0.0.1:${sandbox}/_sandbox/faults`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(input),
    });
  const page = await open(browser, `http://127.0.0.1:${admin}/console`, SIZE);
  await page.getByText('Live').waitFor();
  for (let second = 0; second < 20; second += 1) {
    if (second === 5) await fault({ operation: 'listNotifications', status: 503 });
    if (second === 11) await fault({ operation: 'listPaymentMethods', delayMs: 800 });
    const paths = ['/bff/v1/account-overview', '/api/v2/payment/transaction/', '/api/v2/subscription/'];
    await Promise.all([...paths.map(read), delay(1_000)]);
  }
  await page.screenshot({ path: `${PICTURES}/console.png` });
}

mkdirSync(PICTURES, { recursive: true });
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  await ofTheExample(browser);
  await ofTheConsole(browser);
} finally {
  await browser.close();
  for (const child of children) child.kill('SIGTERM');
}
