import { describe, it } from 'vitest';
import { scenarios } from './scenarios.ts';
import { platformScenarios } from './scenarios/platform.ts';
import type { Stage } from './stage.ts';

/** Tests all scenarios on a stage; those of the other runtime are skipped by name, with the reason. */
export function play(platform: 'Node' | 'workerd', stage: () => Stage): void {
  it.for(scenarios)('$name', (scenario) => scenario.run(stage()));

  const here = platformScenarios.filter(({ on }) => on === platform);
  const elsewhere = platformScenarios.filter(({ on }) => on !== platform);

  describe('of this runtime alone', () => {
    it.for(here)('$name ($because)', (scenario) => scenario.run(stage()));
  });

  describe('of the other runtime', () => {
    it.skip.for(elsewhere)('$name ($on only: $because)', () => undefined);
  });
}
