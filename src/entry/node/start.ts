import type { Variables } from '../../config.ts';
import { portico } from '../../portico.ts';
import { overviews, proxyAccount } from '../../proxy-account/index.ts';
import { assignment } from './assignment.ts';
import { serve } from './listen.ts';
import { runtimeOf } from './runtime.ts';
import { announce, sandboxBeside } from './sandbox.ts';
import { BAD_CONFIG, gatherVariables, type Io, linesOf, type Refuse } from './variables.ts';

/** Nothing can be started with these variables. */
class Refusal extends Error {}

const refuse: Refuse = (problems) => {
  throw new Refusal(linesOf(problems));
};

/**
 * The program: what it does with these variables, and the words after its name. It returns the status to exit with, or
 * undefined where it serves until a signal comes.
 */
export async function start(env: Variables, io: Io, words: readonly string[] = []): Promise<number | undefined> {
  if (words.length > 0) return (await import('../cli/words.ts')).run(words, env, io);
  try {
    const gathered = gatherVariables(env, refuse);
    const sandbox = assignment ? undefined : await sandboxBeside(runtimeOf(gathered));
    const runtime = runtimeOf(gathered, sandbox?.trial ?? assignment?.trial, refuse);
    const gateway = portico({ runtime, rows: proxyAccount, overviews });
    const served = await serve(gateway.app, gateway, sandbox?.close);
    if (sandbox) announce(served, sandbox.trial);
    return undefined;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    io.err(error.message);
    return BAD_CONFIG;
  }
}

/** Does what this process was started for. */
export async function main(): Promise<void> {
  const words = process.argv.slice(2);
  if (words.length > 0) return (await import('../cli/words.ts')).obey(words);
  const status = await start(process.env, {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
  });
  if (status !== undefined) process.exit(status);
}
