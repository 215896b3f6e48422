import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node';

/** A test that fails now and then, for a reason that is known and has nothing to do with what it tests. */
interface Unsteady {
  readonly file: string;
  /** With those of its groups: `group > test`. */
  readonly test: string;
  /** The day on which it was listed. */
  readonly since: string;
  readonly why: string;
}

const MOST_CHARACTERS = 500;

type Failed = readonly [name: string, errors: readonly { readonly message: string }[] | undefined];

const isNamed = ({ module, fullName }: TestCase, { file, test }: Unsteady) =>
  module.relativeModuleId === file && fullName === test;

/** What is wrong with the list itself: tests that are not there, where their files were run or are gone. */
function gone(list: readonly Unsteady[], modules: readonly TestModule[], tests: readonly TestCase[]): Failed[] {
  const isLookedAt = (file: string) => !existsSync(file) || modules.some((one) => one.relativeModuleId === file);
  return list
    .filter((one) => isLookedAt(one.file) && !tests.some((test) => isNamed(test, one)))
    .map(({ file, test }) => [
      `${file}: ${test}`,
      [{ message: 'there is no such test, but it is listed as unsteady' }],
    ]);
}

const nameOf = ({ module, fullName }: TestCase | TestSuite) => `${module.relativeModuleId}: ${fullName}`;

const line = ([name, errors = []]: Failed) =>
  `${name}: ${errors
    .map(({ message }) => message)
    .join('; ')
    .replaceAll(/\s+/g, ' ')
    .slice(0, MOST_CHARACTERS)}`;

/**
 * Writes to `to` what `.ci/run` reads: a line `<passed> <failed> <unsteady>`, then a line for each that failed. A test
 * that fails and is in `listed` counts as unsteady only.
 */
export const ciResults = (listed: string, to: string): Reporter => ({
  onTestRunEnd(modules, unhandled) {
    const list = JSON.parse(readFileSync(listed, 'utf8')) as readonly Unsteady[];
    const tests = modules.flatMap(({ children }) => [...children.allTests()]);
    const groups = modules.flatMap((one) => [one, ...one.children.allSuites()]);
    const bad = tests.filter((test) => test.result().state === 'failed');
    const whyOf = (test: TestCase) => list.find((one) => isNamed(test, one));
    const failed: Failed[] = [
      ...bad.filter((test) => !whyOf(test)).map((test): Failed => [nameOf(test), test.result().errors]),
      ...groups
        .filter((one) => one.errors().length > 0)
        .map((one): Failed => ['module' in one ? nameOf(one) : one.relativeModuleId, one.errors()]),
      ...unhandled.map((error): Failed => ['unhandled', [error]]),
      ...gone(list, modules, tests),
    ];
    const unsteady = bad.filter(whyOf).map((test) => `unsteady since ${whyOf(test)?.since}: ${nameOf(test)}`);
    const passed = tests.filter((test) => test.result().state === 'passed').length;
    mkdirSync(dirname(to), { recursive: true });
    const lines = [
      `${passed} ${failed.length} ${unsteady.length}`,
      ...failed.map((one) => `FAILED: ${line(one)}`),
      ...unsteady,
    ];
    writeFileSync(to, `${lines.join('\n')}\n`);
  },
});
