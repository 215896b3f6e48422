import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node';

const MOST_CHARACTERS = 500;

type Errors = readonly { readonly message: string }[] | undefined;

const nameOf = ({ module, fullName }: TestCase | TestSuite) => `${module.relativeModuleId}: ${fullName}`;

const line = (name: string, errors: Errors = []) =>
  `FAILED: ${name}: ${errors
    .map(({ message }) => message)
    .join('; ')
    .replaceAll(/\s+/g, ' ')
    .slice(0, MOST_CHARACTERS)}`;

/** Writes to `to` what `.ci/run` reads: a line `<passed> <failed>`, then a line for each that failed. */
export const ciResults = (to: string): Reporter => ({
  onTestRunEnd(modules: readonly TestModule[], unhandled) {
    const tests = modules.flatMap(({ children }) => [...children.allTests()]);
    const groups = modules.flatMap((one) => [one, ...one.children.allSuites()]);
    const failed = [
      ...tests
        .filter((test) => test.result().state === 'failed')
        .map((test) => line(nameOf(test), test.result().errors)),
      ...groups
        .filter((one) => one.errors().length > 0)
        .map((one) => line('module' in one ? nameOf(one) : one.relativeModuleId, one.errors())),
      ...unhandled.map((error) => line('unhandled', [error])),
    ];
    const passed = tests.filter((test) => test.result().state === 'passed').length;
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, `${[`${passed} ${failed.length}`, ...failed].join('\n')}\n`);
  },
});
