import { execFileSync } from 'node:child_process';
import { constants, copyFileSync, cpSync, globSync, mkdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ROOT, textOf } from './files.ts';

/** A stage of the Dockerfile, of which the steps have been carried out in a folder. */
export interface Stage {
  /** Its `/`. */
  readonly root: string;
  /** Its WORKDIR. */
  cwd: string;
  readonly env: Record<string, string>;
  /** Of the instructions that leave the file system alone, what the last of each says. */
  readonly said: Record<string, string>;
}

type Step = readonly [instruction: string, rest: string];

/** Its instructions, each on one line, without what is for people. */
export const steps: readonly Step[] = textOf('Dockerfile')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, '')
  .split('\n')
  .flatMap((line) => {
    const [, instruction, rest] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    return instruction !== undefined && rest !== undefined ? [[instruction, rest] as const] : [];
  });

/** Carries the steps out below an empty folder, where nothing is but what they put there. Returns the stages by their names. */
export function buildIn(folder: string): ReadonlyMap<string, Stage> {
  const context = join(folder, 'context');
  copyContext(context);
  const stages = new Map<string, Stage>();
  for (const [instruction, rest] of steps) {
    if (instruction === 'FROM') {
      const name = / AS (.+)$/.exec(rest)?.[1] ?? 'image';
      stages.set(name, newStage(join(folder, name)));
    }
    const stage = [...stages.values()].at(-1);
    if (stage) carryOut(stage, [instruction, rest], (from) => (from === undefined ? context : stages.get(from)!.root));
  }
  return stages;
}

/** What `.dockerignore` lets through. */
function copyContext(context: string): void {
  const allowed = textOf('.dockerignore')
    .split('\n')
    .flatMap((line) => /^!(.+)/.exec(line)?.[1] ?? []);
  for (const path of globSync(allowed, { cwd: ROOT }))
    cpSync(join(ROOT, path), join(context, path), { recursive: true });
}

/** With the Node that its base brings. */
function newStage(root: string): Stage {
  const bin = join(root, 'usr/local/bin');
  mkdirSync(bin, { recursive: true });
  copyFileSync(process.execPath, join(bin, 'node'), constants.COPYFILE_FICLONE);
  return { root, cwd: root, env: { PATH: `${bin}:${process.env['PATH']}` }, said: {} };
}

function carryOut(stage: Stage, [instruction, rest]: Step, rootOf: (stage?: string) => string): void {
  if (instruction === 'WORKDIR') mkdirSync((stage.cwd = join(stage.root, rest)), { recursive: true });
  else if (instruction === 'ENV') for (const [name, value] of pairsOf(rest)) stage.env[name] = value;
  else if (instruction === 'RUN')
    execFileSync('sh', ['-c', rest], { cwd: stage.cwd, env: { ...stage.env, ...OF_NPM } });
  else if (instruction === 'COPY') {
    const [, from, paths = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(rest) ?? [];
    copyTo(stage.cwd, rootOf(from), paths.split(' '));
  } else stage.said[instruction] = rest;
}

/** What has been downloaded once is taken from its cache. */
const OF_NPM = { HOME: process.env['HOME'] ?? '', npm_config_prefer_offline: 'true', npm_config_loglevel: 'error' };

/** As Docker does: what is in a folder, rather than the folder. */
function copyTo(cwd: string, from: string, paths: readonly string[]): void {
  const to = join(cwd, paths.at(-1)!);
  for (const pattern of paths.slice(0, -1)) {
    const found = globSync(pattern.replace(/^\//, ''), { cwd: from });
    if (found.length === 0) throw new Error(`COPY finds no ${pattern}`);
    for (const path of found) {
      const isInto = to.endsWith('/') && statSync(join(from, path)).isFile();
      cpSync(join(from, path), isInto ? join(to, basename(path)) : to, { recursive: true });
    }
  }
}

/** `name=value`, where the value may stand in quotes. */
export const pairsOf = (rest: string): [string, string][] =>
  [...rest.matchAll(/(\S+?)=(?:"([^"]*)"|(\S*))/g)].map(([, name = '', quoted, bare = '']) => [name, quoted ?? bare]);
