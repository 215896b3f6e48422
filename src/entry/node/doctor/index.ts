import { configured, type Configured } from './configuration.ts';
import { about, type Finding, isBad, textOf, sumOf, within } from './findings.ts';
import { keyFindings } from './key.ts';
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
    tell(read.problems.map((problem) => bad(lineOf(problem), 'It would not start')));
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

/** A key is sent only to an upstream that answers as it should. */
async function upstreamAndKey({ config, settings, table, variables }: Configured): Promise<Finding[]> {
  const { upstreamBaseUrl } = config;
  if (!upstreamBaseUrl) return [about('upstream').good('UPSTREAM_BASE_URL is not set: the sandbox takes its place')];
  const probe = openProbe(upstreamBaseUrl, wayTo(upstreamBaseUrl, settings), { config, table });
  try {
    const findings = await upstreamFindings(probe);
    return findings.some(isBad) ? findings : [...findings, ...(await keyFindings(probe, variables['PORTICO_KEY']))];
  } finally {
    probe.close();
  }
}
