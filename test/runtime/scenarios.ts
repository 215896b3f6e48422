import { cachingScenarios } from './scenarios/caching.ts';
import { composedScenarios } from './scenarios/composed.ts';
import { concurrencyScenarios } from './scenarios/concurrency.ts';
import { corsScenarios } from './scenarios/cors.ts';
import { documentationScenarios } from './scenarios/documentation.ts';
import { errorScenarios } from './scenarios/errors.ts';
import { bodilessScenarios } from './scenarios/bodiless.ts';
import { idempotencyScenarios } from './scenarios/idempotency.ts';
import { limitScenarios } from './scenarios/limits.ts';
import { operationScenarios } from './scenarios/operations.ts';
import { readYourWritesScenarios } from './scenarios/read-your-writes.ts';
import { sessionScenarios } from './scenarios/sessions.ts';
import { tellingScenarios } from './scenarios/telling.ts';
import { troubleScenarios } from './scenarios/trouble.ts';
import { waitingScenarios } from './scenarios/waiting.ts';
import type { Scenario } from './stage.ts';

/**
 * What holds on every runtime and with every store, over sockets, with the sandbox for an upstream. What holds on one
 * runtime alone is in scenarios/platform.ts, with the reason.
 */
export const scenarios: readonly Scenario[] = [
  ...operationScenarios,
  ...bodilessScenarios,
  ...errorScenarios,
  ...cachingScenarios,
  ...readYourWritesScenarios,
  ...concurrencyScenarios,
  ...idempotencyScenarios,
  ...composedScenarios,
  ...troubleScenarios,
  ...waitingScenarios,
  ...limitScenarios,
  ...tellingScenarios,
  ...documentationScenarios,
  ...corsScenarios,
  ...sessionScenarios,
];
