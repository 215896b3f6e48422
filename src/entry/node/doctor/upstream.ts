import { type Answers, answerFindings } from './answers.ts';
import { connectionFindings } from './connection.ts';
import { isBad } from './findings.ts';
import { nameFindings } from './name.ts';
import type { Probe } from './probe.ts';

/** What can be said of the upstream without a key, step by step: what comes after one that fails is not tried. */
export async function upstreamFindings(probe: Probe): Promise<Answers> {
  const { upstream, way, proxy } = probe;
  if (proxy) return answerFindings(probe);
  const findings = await nameFindings(upstream);
  if (!findings.some(isBad)) findings.push(...(await connectionFindings(upstream, way.tls?.secureContext)));
  if (findings.some(isBad)) return { findings, asksForKey: false };
  const answers = await answerFindings(probe);
  return { ...answers, findings: [...findings, ...answers.findings] };
}
