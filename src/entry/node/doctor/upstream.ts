import { about, type Finding, isBad } from './findings.ts';
import { answerFindings } from './answers.ts';
import { connectionFindings } from './connection.ts';
import { nameFindings } from './name.ts';
import type { Probe } from './probe.ts';
import { proxyIn } from './way.ts';

const { good } = about('upstream');

/** What can be said of the upstream without a key, step by step: what comes after one that fails is not tried. */
export async function upstreamFindings(probe: Probe): Promise<Finding[]> {
  const { upstream, way } = probe;
  const proxy = proxyIn(way, upstream);
  if (proxy) return [good(`reached by the proxy ${proxy.host}`), ...(await answerFindings(probe))];
  const findings = await nameFindings(upstream);
  if (!findings.some(isBad)) findings.push(...(await connectionFindings(upstream, way.tls?.secureContext)));
  if (findings.some(isBad)) return findings;
  return [...findings, ...(await answerFindings(probe))];
}
