import { spawn } from 'node:child_process';
import { once } from 'node:events';

interface Parts {
  readonly schedules: number;
  /** Of the first one. */
  readonly seed: number;
  readonly processes: number;
}

/** Runs a topic in so many processes, each with its part of the schedules. The process fails where one of them does. */
export async function inParts(topic: string, { schedules, seed, processes }: Parts, others: readonly string[] = []) {
  const part = Math.ceil(schedules / processes);
  const children = Array.from({ length: Math.ceil(schedules / part) }, (_, i) => {
    const its = { schedules: Math.min(part, schedules - i * part), seed: seed + i * part, processes: 1 };
    const given = Object.entries(its).flatMap(([name, value]) => [`--${name}`, String(value)]);
    return spawn(process.execPath, ['test/load/index.ts', topic, ...given, ...others], { stdio: 'inherit' });
  });
  const exits = await Promise.all(children.map(async (child) => (await once(child, 'exit')) as [number | null]));
  if (exits.some(([code]) => code !== 0)) process.exitCode = 1;
}
