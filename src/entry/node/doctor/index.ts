import { configured, type Configured } from './configuration.ts';
import { about, type Finding, isBad, textOf, sumOf, within } from './findings.ts';
import { keyFindings, keyLeftOut } from './key.ts';
import { machineFindings } from './machine.ts';
import { proxyFindings } from './proxies.ts';
import { runningFindings } from './running.ts';
import { storeFindings } from './store.ts';
import { upstreamFindings } from './upstream.ts';
import { openProbe } from './probe.ts';
import { wayTo } from './way.ts';
import { lineOf } from '../variables.ts';

/** For all that is asked of one other machine. */
const LONGEST_MS = 20_000;

/** Looks at what a gateway with this configuration needs, and says each finding. Returns the status to exit with. */
export async function doctor(hasSandbox: boolean, say: (text: string) => void): Promise<number> {
  const { good, poor, bad } = about('configuration');
  const read = configured(hasSandbox);
  const found: Finding[] = [];
  const tell = (findings: readonly Finding[]) => {
    found.push(...findings);
    for (const finding of findings) say(textOf(finding));
  };
  if ('problems' in read) {
    const { length } = read.problems;
    tell(read.problems.map((one, at) => bad(lineOf(one), at === length - 1 ? 'It would not start' : undefined)));
  } else {
    tell([
      good('this configuration would start'),
      ...read.warnings.map((warning) => poor(warning, 'It starts all the same')),
    ]);
    for (const findings of lookAt(read)) tell(await findings);
  }
  say(`\n${sumOf(found)}`);
  return found.some(isBad) ? 1 : 0;
}

const SANDBOX = about('upstream').good('UPSTREAM_BASE_URL is not set: the sandbox takes its place');

const NOT_ASKED = 'It is sent only to an upstream that answers 401 or 403 without it';

/** All at once; in the order in which they are told. */
function lookAt(read: Configured): readonly Promise<readonly Finding[]>[] {
  return [
    within(LONGEST_MS, 'upstream', () => upstreamAndKey(read)),
    within(LONGEST_MS, 'store', () => storeFindings(read.settings)),
    within(LONGEST_MS, 'proxies', async () => proxyFindings(read.config)),
    within(LONGEST_MS, 'gateway', () => runningFindings(read.config)),
    within(LONGEST_MS, 'machine', async () => machineFindings(read)),
  ];
}

/** A key is sent only to an upstream that asks for one. */
async function upstreamAndKey({ config, settings, table, variables }: Configured): Promise<Finding[]> {
  const { upstreamBaseUrl } = config;
  const key = variables['PORTICO_KEY'];
  if (!upstreamBaseUrl) return [SANDBOX, ...keyLeftOut(key, "The sandbox takes the upstream's place")];
  const probe = openProbe(upstreamBaseUrl, wayTo(upstreamBaseUrl, settings), { config, table });
  try {
    const { findings, asksForKey } = await upstreamFindings(probe);
    return [...findings, ...(asksForKey ? await keyFindings(probe, key) : keyLeftOut(key, NOT_ASKED))];
  } finally {
    probe.close();
  }
}
