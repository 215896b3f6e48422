import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const TICKS_A_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** Of Linux' /proc; empty where the process has ended. */
function proc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch {
    return '';
  }
}

/** A process, its children and theirs. */
function treeOf(pid: number): readonly number[] {
  const children = proc(`${pid}/task/${pid}/children`).split(' ').filter(Boolean);
  return [pid, ...children.flatMap((child) => treeOf(Number(child)))];
}

const sum = (pid: number, of: (pid: number) => number) => treeOf(pid).reduce((all, one) => all + of(one), 0);

/** User and system together, of all its threads. */
export const cpuUs = (pid: number): number => sum(pid, (one) => (ticksOf(one) / TICKS_A_SECOND) * 1e6);

/** Fields 14 and 15 of proc_pid_stat(5), counted behind the name of the program. */
function ticksOf(pid: number): number {
  const stat = proc(`${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
}

/** What of it is in memory. */
export const residentMb = (pid: number): number =>
  sum(pid, (one) => Number(/VmRSS:\s+(\d+)/.exec(proc(`${one}/status`))?.[1] ?? 0) / 1_024);
