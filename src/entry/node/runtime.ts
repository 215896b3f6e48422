import type { Variables } from '../../config.ts';
import type { Given, Runtime } from '../../portico.ts';
import type { TrialAccount } from '../../routes/docs.ts';
import { nodeDeps, openStore } from './deps.ts';
import { pinoLogger } from './logger.ts';
import { refuse, withFile } from './variables.ts';

export type OpenedOnNode = ReturnType<typeof open>;

/** An upstream to try the gateway with. */
export interface Trial {
  readonly upstream: URL;
  readonly accounts: readonly TrialAccount[];
}

/**
 * The runtime for `portico`: Node, configured by these variables, which are joined by those of `.env` if they are the process's
 * own. A bad one ends the process with status 78. `trial`: where no upstream is configured.
 */
export function fromEnv(variables: Variables, trial?: Trial): { readonly runtime: Runtime<OpenedOnNode> } {
  return { runtime: { variables: withFile(variables), open: (given) => open(given, trial), refuse } };
}

function open({ config, table, overviews, hooks }: Given, trial?: Trial) {
  const upstream = config.upstreamBaseUrl ?? trial?.upstream;
  if (!upstream) return refuse([{ variable: 'UPSTREAM_BASE_URL', expected: 'a URL' }]);
  const logger = pinoLogger(config.logLevel);
  let isReady = false;
  const given = {
    config,
    table,
    overviews,
    hooks,
    upstream,
    logger,
    readiness: { isReady: () => isReady },
    trialAccounts: trial?.accounts,
  };
  const store = openStore(given);
  return {
    ...nodeDeps(given, store, logger.dropped),
    logger,
    storeOpened: store.opened,
    /** Whether requests are taken, for probes. */
    setReady: (is: boolean) => void (isReady = is),
  };
}
