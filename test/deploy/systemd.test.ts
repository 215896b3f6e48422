import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { BAD_CONFIG } from '../../src/entry/node/variables.ts';
import { configIn, isInstalled, stopMs, textOf, variables } from './files.ts';

const text = textOf('deploy/systemd/portico.service');

/** What is said under a name, in the order of the file. */
const all = (name: string): string[] =>
  [...text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);
const one = (name: string): string | undefined => all(name)[0];

const environment = Object.fromEntries(
  all('Environment').flatMap((line) => line.split(' ').map((pair) => pair.split('=') as [string, string])),
);
const { SECRETS_FILE: ofSecrets = '', STORE_URL_FILE: ofStore = '', ...settings } = environment;

describe('the systemd unit', () => {
  test('sets variables that the gateway has, to values that it takes', () => {
    expect(Object.keys(environment).filter((name) => !variables.has(name))).toEqual([]);
    expect(settings['NODE_ENV']).toBe('production');
  });

  test('reads the others from a file that a reload reads too', () => {
    expect([one('WorkingDirectory'), all('EnvironmentFile')]).toEqual(['/etc/portico', []]);
    expect(text).toContain('/etc/portico/.env');
  });

  test('hands over what is secret in files that only the service can read', () => {
    const names = all('LoadCredential').map((credential) => credential.split(':', 1)[0]);
    expect([ofSecrets, ofStore]).toEqual(names.map((name) => `%d/${name}`));
  });

  test('leaves time to be taken out of rotation and then to drain', () => {
    const config = configIn({ UPSTREAM_BASE_URL: 'http://upstream.example', ...settings });
    expect(config.shutdownDelayMs).toBeGreaterThan(0);
    expect(Number(one('TimeoutStopSec')) * 1000).toBeGreaterThan(stopMs(config));
  });

  test('starts what the image starts, and again unless the configuration is bad', () => {
    const ofImage = JSON.parse(/^CMD (.*)$/m.exec(textOf('Dockerfile'))![1]!) as string[];
    expect(one('ExecStart')).toBe(`/usr/bin/${ofImage.join(' ').replace('portico.mjs', '/opt/portico/portico.mjs')}`);
    expect([one('Restart'), one('RestartPreventExitStatus')]).toEqual(['always', String(BAD_CONFIG)]);
    expect([one('ExecReload'), one('KillMode')]).toEqual(['/bin/kill -HUP $MAINPID', 'mixed']);
  });

  describe.skipIf(!isInstalled('systemd-analyze'))('(skipped where systemd is not installed)', () => {
    const folder = mkdtempSync(join(tmpdir(), 'portico-systemd-'));
    const file = join(folder, 'portico.service');
    afterAll(() => rmSync(folder, { recursive: true }));

    /** It looks for the program, too. Of what it does not know, it only warns. */
    function analyzed(unit: string, ...args: readonly string[]) {
      writeFileSync(file, unit.replace('/usr/bin/node', process.execPath));
      const { status, stdout, stderr } = spawnSync('systemd-analyze', [...args, file], { encoding: 'utf8' });
      return { status, said: stdout + stderr };
    }

    test('is what systemd allows', () => {
      expect(analyzed(text, 'verify')).toEqual({ status: 0, said: '' });
      expect(analyzed(text.replace('UMask=', 'Umask='), 'verify').said).toContain("Unknown key 'Umask'");
    });

    test('is exposed as little as systemd calls OK', () => {
      const args = ['security', '--offline=true', '--no-pager', '--threshold=20'];
      expect(analyzed(text, ...args).said).toContain('Overall exposure level for portico.service: 1.');
      expect(analyzed(text, ...args).status).toBe(0);
      expect(analyzed(text.replaceAll(/^(Protect|Restrict|System|Private).*$/gm, ''), ...args).status).not.toBe(0);
    });
  });
});
