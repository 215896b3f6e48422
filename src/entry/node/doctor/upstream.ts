import { type Finding, isBad } from './findings.ts';
import { answerFindings } from './answers.ts';
import { connectionFindings } from './connection.ts';
import { nameFindings } from './name.ts';
import type { Probe } from './probe.ts';

/** What can be said of the upstream without a key, step by step: what comes after one that fails is not tried. */
export async function upstreamFindings(probe: Probe): Promise<Finding[]> {
  const { upstream } = probe;
  const findings: Finding[] = [];
  for (const step of [nameFindings, connectionFindings]) {
    findings.push(...(await step(upstream)));
    if (findings.some(isBad)) return findings;
  }
  return [...findings, ...(await answerFindings(probe))];
}
