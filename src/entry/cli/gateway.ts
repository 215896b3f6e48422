import * as words from './words.ts';

const HELP = `npm start                starts the gateway; so does node dist/portico.mjs
`;

/** What the gateway does where words come after its name. */
export const obey = (given: readonly string[]): Promise<void> =>
  words.obey(given, { hasSandbox: true, help: HELP, commands: {} });
