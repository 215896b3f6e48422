import { parseArgs } from 'node:util';
import { VERSION } from '../../core/version.ts';
import type { Variables } from '../../config.ts';
import { ENDING } from '../node/signals.ts';
import type { Io } from '../node/variables.ts';

/** What a program has beside what each of ours has. */
interface Program {
  /** Whether it starts the sandbox where there is no upstream. */
  readonly hasSandbox: boolean;
  /** The lines of its help that come first. */
  readonly help: string;
  /** Its commands that take a file, and what they print. */
  readonly printers: Readonly<Record<string, (file: string) => Promise<string>>>;
}

const GATEWAY: Program = {
  hasSandbox: true,
  help: `npm start                starts the gateway; so does node dist/portico.mjs
`,
  printers: {},
};

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
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** `EX_USAGE` of sysexits.h. */
const BAD_WORDS = 64;

/** The words are not understood. */
class BadWords extends Error {}

/** Does what the words of a command line say, and ends the process. */
export async function obey(words: readonly string[], program = GATEWAY): Promise<void> {
  for (const name of ENDING) process.removeAllListeners(name); // nothing has to be finished
  const io = {
    out: (text: string) => void process.stdout.write(text),
    err: (text: string) => void process.stderr.write(text),
  };
  const status = await run(words, process.env, io, program);
  process.stdout.write('', () => process.exit(status)); // when all is written
}

/** Does what they say, and returns the status to exit with. */
export async function run(words: readonly string[], env: Variables, io: Io, program = GATEWAY): Promise<number> {
  try {
    return await carryOut(words, env, io, program);
  } catch (error) {
    io.err(`portico: ${error instanceof Error ? error.message : String(error)}\n`);
    return error instanceof BadWords ? BAD_WORDS : 1;
  }
}

async function carryOut(words: readonly string[], env: Variables, io: Io, program: Program): Promise<number> {
  const { values, positionals } = understood(words);
  const [command, file, ...rest] = positionals;
  const { printers } = program;
  const printer = command !== undefined && Object.hasOwn(printers, command) ? printers[command] : undefined;
  if (values.version) io.out(`${VERSION}\n`);
  else if (values.help || words.length === 0) io.out(program.help + HELP);
  else if (printer) {
    if (file === undefined || rest.length > 0) throw new BadWords(`portico ${command} takes one file`);
    io.out(await printer(file));
  } else {
    const isDoctor = command === 'doctor' && file === undefined;
    if (!isDoctor && (command !== undefined || !values.check))
      throw new BadWords(`there is no command ${words.join(' ')}; --help names all`);
    const { check, doctor } = await import('../node/doctor.ts'); // loaded late: nothing else needs it
    return (isDoctor ? doctor : check)(env, io, program.hasSandbox);
  }
  return 0;
}

function understood(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    const { message } = error as Error;
    throw new BadWords(`${message.split(/[.']? To specify/, 1)[0]}; --help names all`, { cause: error });
  }
}
