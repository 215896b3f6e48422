import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { emptyFolder } from '../runtime/node-gateway.ts';
import { lastRelease } from './release.ts';

/** A repository whose commits have these versions, one after the other. */
function historyOf(...versions: readonly string[]) {
  const root = emptyFolder();
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@x.example', '-c', 'commit.gpgsign=false', ...args], {
      cwd: root,
      encoding: 'utf8',
    });
  const write = (version: string, more = '') =>
    writeFileSync(join(root, 'package.json'), `{\n  "name": "x",\n  "version": "${version}"${more}\n}\n`);
  git('init', '-q');
  const commits = versions.map((version, n) => {
    write(version, `,\n  "n": ${n}`);
    git('add', '.');
    git('commit', '-q', '-m', version);
    return git('rev-parse', 'HEAD').trim();
  });
  return { root, commits, git, write };
}

describe('the other version', () => {
  test('is that of the commit that last raised the version', () => {
    const { root, commits } = historyOf('0.1.0', '0.2.0', '0.2.0', '0.10.0', '0.10.0', '0.10.0');
    expect(lastRelease(root)).toEqual({ commit: commits[3], version: '0.10.0' });
  });

  test('is the same while the version is raised and not yet committed, and the one before once it is', () => {
    const { root, commits, git, write } = historyOf('0.1.0', '0.2.0', '0.2.0');
    write('0.3.0');
    expect(lastRelease(root)).toEqual({ commit: commits[1], version: '0.2.0' });
    git('commit', '-q', '-a', '-m', 'raised');
    expect(lastRelease(root)).toEqual({ commit: commits[1], version: '0.2.0' });
    git('commit', '-q', '--allow-empty', '-m', 'next');
    expect(lastRelease(root).version).toBe('0.3.0');
  });

  test('is none that lowered it', () => {
    const { root, commits } = historyOf('0.1.0', '0.3.0', '0.2.0', '0.2.0');
    expect(lastRelease(root).commit).toBe(commits[1]);
  });

  test('has to be in the history: a shallow clone is told so', () => {
    const { root } = historyOf('0.1.0', '0.2.0', '0.2.0', '0.2.0');
    const clone = join(emptyFolder(), 'clone');
    execFileSync('git', ['clone', '-q', '--depth=2', `file://${root}`, clone]);
    expect(() => lastRelease(clone)).toThrow(
      /no commit before HEAD raises the version.*shallow.*git fetch --unshallow/,
    );
    expect(() => lastRelease(historyOf('0.1.0', '0.1.0').root)).toThrow(/no commit before HEAD raises the version/);
  });

  test('cannot be built where there is no history', () => {
    expect(() => lastRelease(emptyFolder())).toThrow("built from git's history, which cannot be read");
  });
});
