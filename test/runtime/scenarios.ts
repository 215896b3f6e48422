import { cachingScenarios } from './scenarios/caching.ts';
import { composedScenarios } from './scenarios/composed.ts';
import { concurrencyScenarios } from './scenarios/concurrency.ts';
import { documentationScenarios } from './scenarios/documentation.ts';
import { errorScenarios } from './scenarios/errors.ts';
import { idempotencyScenarios } from './scenarios/idempotency.ts';
import { operationScenarios } from './scenarios/operations.ts';
import { troubleScenarios } from './scenarios/trouble.ts';
import type { Scenario } from './stage.ts';

/** What holds on every runtime, over sockets, with the sandbox for an upstream. */
export const scenarios: readonly Scenario[] = [
  ...operationScenarios,
  ...errorScenarios,
  ...cachingScenarios,
  ...concurrencyScenarios,
  ...idempotencyScenarios,
  ...composedScenarios,
  ...troubleScenarios,
  ...documentationScenarios,
];
