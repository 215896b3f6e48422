import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { startUpstream } from '../support/scripted-upstream.ts';
import { emptyFolder, killAll, ROOT, run } from '../runtime/node-gateway.ts';
import { LEAK_MARK, secret } from '../support/secrets.ts';

/** Runs the gateway's program with words after its name. */
async function program(words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const command = [process.execPath, join(ROOT, 'src/entry/node.ts'), ...words] as const;
  const running = run({ env: { PORT: '0', ...env }, command });
  const status = await running.exited;
  return { status, stdout: running.stdout(), stderr: running.stderr() };
}

afterEach(killAll);

describe('--check', () => {
  it('says that a configuration would start, and connects nowhere', async () => {
    const upstream = await startUpstream();
    const env = { UPSTREAM_BASE_URL: upstream.url, STORE_URL: upstream.url.replace('http', 'redis') };
    const said = await program(['--check'], { ...env, SECRETS: `${secret()}-of-more-characters` });
    expect(said).toEqual({ status: 0, stdout: 'this configuration would start\n', stderr: '' });
    expect(upstream.connections()).toBe(0);
    await upstream.close();
  });

  it('says that the sandbox takes the place of an upstream', async () => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, '.env'), 'PORT=0\n');
    const checking = run({ cwd, command: [process.execPath, join(ROOT, 'src/entry/node.ts'), '--check'] });
    expect(await checking.exited).toBe(0);
    expect(checking.stdout()).toBe('this configuration would start, with the sandbox as its upstream\n');
    expect(checking.stderr()).toBe('');
  });

  it('names each bad variable as the start does, and never its value', async () => {
    const bad = { PORT: LEAK_MARK, WORKERS: LEAK_MARK, CACHE_POLICY: `{"${LEAK_MARK}":false}` };
    const [checked, started] = await Promise.all([program(['--check'], bad), program([], bad)]);
    expect([checked.status, checked.stdout]).toEqual([78, '']);
    expect(checked.stderr.match(/^\w+: expected/gm)).toHaveLength(3);
    expect(checked.stderr).toBe(started.stderr);
  });
});

describe('the words after the name', () => {
  it('are its version, or help that names all', async () => {
    const [version, help] = await Promise.all([program(['--version']), program(['--help'])]);
    expect(version).toEqual({ status: 0, stdout: `${manifest.version}\n`, stderr: '' });
    for (const word of ['doctor', '--check', '--version', '--help']) expect(help.stdout).toContain(word);
  });

  it.each(['docter', '--chek', 'doctor more', '--check=yes'])(
    '%s are not understood: one line, and 64',
    async (words) => {
      const { status, stdout, stderr } = await program(words.split(' '));
      expect([status, stdout]).toEqual([64, '']);
      expect(stderr).toMatch(/^portico: [^\n]+; --help names all\n$/);
    },
  );
});
