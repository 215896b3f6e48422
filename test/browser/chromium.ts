import { execFileSync } from 'node:child_process';
import { type Browser, chromium } from 'playwright-core';

/** The one that is installed; `CHROMIUM` names another one. */
function installed(): string {
  try {
    return execFileSync('sh', ['-c', 'command -v "${CHROMIUM:-chromium}"'], { encoding: 'utf8' }).trim();
  } catch {
    throw new Error('These tests need Chromium: install it, or say in CHROMIUM where it is.');
  }
}

export const launchChromium = (): Promise<Browser> =>
  chromium.launch({ executablePath: installed(), args: ['--no-sandbox'] });
