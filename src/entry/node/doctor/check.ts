import { BAD_CONFIG, sayProblems } from '../variables.ts';
import { configured } from './configuration.ts';

/** Says whether a gateway would start with this configuration, and connects nowhere. Returns the status to exit with. */
export async function check(hasSandbox: boolean, say: (text: string) => void): Promise<number> {
  const read = configured(hasSandbox);
  if ('problems' in read) {
    sayProblems(read.problems);
    return BAD_CONFIG;
  }
  for (const warning of read.warnings) console.error(warning);
  say(`this configuration would start${read.config.upstreamBaseUrl ? '' : ', with the sandbox as its upstream'}\n`);
  return 0;
}
