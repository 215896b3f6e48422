import { stripVTControlCharacters } from 'node:util';
import type { Variables } from '../../src/config.ts';
import { run } from '../../src/entry/cli/words.ts';

/** What the program does with these variables, and the words after its name. */
export async function program(env: Variables, ...words: readonly string[]) {
  let [stdout, stderr] = ['', ''];
  const io = { out: (text: string) => void (stdout += text), err: (text: string) => void (stderr += text) };
  const status = await run(words, env, io);
  return { status, stdout: stripVTControlCharacters(stdout), stderr };
}

/** What it says of variables that it cannot start with, a line each; nothing of good ones. */
export async function complaintsOf(env: Variables): Promise<readonly string[]> {
  const { stderr } = await program(env, '--check');
  return stderr.split('\n').slice(0, -1);
}
