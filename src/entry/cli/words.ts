import { parseArgs } from 'node:util';
import { VERSION } from '../../core/version.ts';
import type { Variables } from '../../config.ts';
import { ENDING } from '../node/signals.ts';
import type { Io } from '../node/variables.ts';

/** What a program does for its words. It returns the status to exit with. */
export type Task = (io: Io) => Promise<number>;

/** What a program has beside what each of ours has. */
export interface Program {
  /** Whether it starts the sandbox where there is no upstream. */
  readonly hasSandbox: boolean;
  /** The lines of its help that come first. */
  readonly help: string;
  /** Those that take a file. `path`: what the words say where in its app the document is. */
  readonly commands: Readonly<Record<string, (file: string, path?: string) => Task>>;
}

const HELP = `portico doctor           asks the upstream, the key in PORTICO_KEY and the store; each line is good, poor or bad,
                         and says what to do. Exits with 0, or with 1 if anything is bad

  --check                whether this configuration would start: exits with 0, or with 78 and what was expected.
                         It connects nowhere
  --version
  --help

doctor and --check read the environment and the .env of this folder, and know the operations of the account API: what
CACHE_POLICY says of other rows is checked at the start of the gateway that has them.
`;

const OPTIONS = {
  check: { type: 'boolean' },
  path: { type: 'string' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** `EX_USAGE` of sysexits.h. */
const BAD_WORDS = 64;

/** Does what the words of a command line say, and ends the process. */
export async function obey(words: readonly string[], program: Program): Promise<void> {
  for (const name of ENDING) process.removeAllListeners(name); // nothing has to be finished
  // What an app that is looked at prints itself goes to stderr. What it has started ends with the process.
  const print = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  let hasPrinted = false;
  const out = (text: string) => {
    hasPrinted = true;
    print(text);
  };
  const status = await run(words, program, process.env, { out, err: (text) => void process.stderr.write(text) });
  if (hasPrinted) print('', () => process.exit(status)); // when it is written
  else process.exit(status);
}

/** Does what they say, and returns the status to exit with. */
export async function run(words: readonly string[], program: Program, env: Variables, io: Io): Promise<number> {
  let failed = BAD_WORDS;
  try {
    const task = taskOf(words, program, env);
    failed = 1;
    return await task(io);
  } catch (error) {
    io.err(`portico: ${error instanceof Error ? error.message : String(error)}\n`);
    return failed;
  }
}

/** @throws Error in words that are not understood */
function taskOf(words: readonly string[], { commands, help, hasSandbox }: Program, env: Variables): Task {
  const { values, positionals } = understood(words);
  const [command, file, ...rest] = positionals;
  if (values.version) return saying(`${VERSION}\n`);
  if (values.help || words.length === 0) return saying(help + HELP);
  const takesFile = command === undefined ? undefined : commands[command];
  if (takesFile) {
    if (file === undefined || rest.length > 0) throw new Error(`portico ${command} takes one file`);
    return takesFile(file, values.path);
  }
  // Loaded late: nothing else needs it.
  if (command === 'doctor' && file === undefined)
    return async (io) => (await import('../node/doctor.ts')).doctor(env, io, hasSandbox);
  if (command === undefined && values.check)
    return async (io) => (await import('../node/doctor.ts')).check(env, io, hasSandbox);
  throw new Error(`there is no command ${words.join(' ')}; --help names all`);
}

function understood(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    const { message } = error as Error;
    throw new Error(`${message.split(/[.']? To specify/, 1)[0]}; --help names all`, { cause: error });
  }
}

const saying =
  (text: string): Task =>
  async ({ out }) => {
    out(text);
    return 0;
  };
