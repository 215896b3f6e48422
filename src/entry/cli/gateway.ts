import type { Variables } from '../../config.ts';
import type { Io } from '../node/variables.ts';
import * as words from './words.ts';

const HELP = `npm start                starts the gateway; so does node dist/portico.mjs
`;

const PROGRAM: words.Program = { hasSandbox: true, help: HELP, commands: {} };

/** What the gateway does where words come after its name. */
export const obey = (given: readonly string[]): Promise<void> => words.obey(given, PROGRAM);

/** The same, in a process that goes on. */
export const run = (given: readonly string[], env: Variables, io: Io): Promise<number> =>
  words.run(given, PROGRAM, env, io);
