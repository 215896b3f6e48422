import { totalmem } from 'node:os';
import { descriptorLimit } from '../server/descriptors.ts';
import type { Configured } from './configuration.ts';
import { about, type Finding } from './findings.ts';

const { good, poor } = about('machine');

const LEAST_DESCRIPTORS = 4_096;
/** Of a process with an empty cache, and what a full one takes: docs/scale.md. */
const BASE_BYTES = 100 * 2 ** 20;
const CACHE_FACTOR = 5;

/** What the process gets of this machine. */
export function machineFindings({ config }: Pick<Configured, 'config'>): Finding[] {
  return [good(`Node ${process.versions.node}`), descriptors(), memory(config.cacheMaxBytes)];
}

function descriptors(): Finding {
  const limit = descriptorLimit();
  if (limit >= LEAST_DESCRIPTORS) return good(`${limit} files and connections may be open`);
  return poor(
    `only ${limit} files and connections may be open`,
    `Raise the hard limit (ulimit -n) to ${LEAST_DESCRIPTORS} or more`,
  );
}

function memory(cacheBytes: number): Finding {
  const there = Math.min(totalmem(), process.constrainedMemory() || Infinity);
  const needed = BASE_BYTES + CACHE_FACTOR * cacheBytes;
  const text = `${mibOf(there)} of memory, up to ${mibOf(needed)} with a full cache`;
  return needed <= there ? good(text) : poor(text, 'Lower CACHE_MAX_BYTES, or it may be killed');
}

const mibOf = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
