import { NO_UPSTREAM, type Variables } from '../../config.ts';
import type { Gateway, Given, Runtime } from '../../portico.ts';
import type { Trial } from './assignment.ts';
import { nodeDeps } from './deps.ts';
import { pinoLogger } from './logger.ts';
import { proxyTo, type Settings, settingsIn } from './settings.ts';
import { openTraces } from './tracing/index.ts';
import { exitBadly, type GatheredVariables, gatherVariables } from './variables.ts';

export type OpenedOnNode = ReturnType<typeof open>;

/**
 * The runtime for `portico`: Node, configured by these variables, which are joined by those of `.env` if they are the process's
 * own. A bad one ends the process with status 78.
 */
export function fromEnv(variables: Variables): { readonly runtime: Runtime } {
  return { runtime: runtimeOf(gatherVariables(variables)) };
}

/** `trial`: where no upstream is configured. */
export function runtimeOf({ variables, problems }: GatheredVariables, trial?: Trial): Runtime {
  const settings = settingsIn(variables);
  return {
    variables,
    otherProblems: () => [...problems, ...('problems' in settings ? settings.problems : [])],
    open: (given) => open(given, 'data' in settings ? settings.data : exitBadly(settings.problems), trial),
    refuse: exitBadly,
  };
}

/** @throws TypeError if the gateway was made with another runtime */
export function openedOnNode(gateway: Gateway | undefined): OpenedOnNode {
  const opened = gateway?.opened;
  if (!opened || !('tracesOpened' in opened))
    throw new TypeError('serve takes an app, and the gateway in it that was made with fromEnv of portico/node');
  return opened as OpenedOnNode;
}

function open(given: Given, settings: Settings, trial: Trial | undefined) {
  const { upstreamBaseUrl, logLevel } = given.config;
  const { storeUrl, storeTls, upstreamTls } = settings;
  const upstream = upstreamBaseUrl ?? trial?.upstream ?? exitBadly([NO_UPSTREAM]);
  const logger = pinoLogger(logLevel);
  const traces = openTraces(upstream, logger);
  /** `serve` says whether requests are taken, and when those under way are cut off. Another server says neither. */
  const state = { isReady: () => true, isCuttingOff: false };
  const tools = {
    ...given,
    upstream,
    logger,
    readiness: state,
    isCuttingOff: () => state.isCuttingOff,
    trialAccounts: trial?.accounts,
    tracing: traces.tracing,
    way: { tls: upstreamTls, ...(upstreamBaseUrl && proxyTo(upstream, settings)) },
    storeAddress: storeUrl && { ...storeUrl, secured: storeTls },
    droppedLines: logger.dropped,
  };
  const made = nodeDeps(tools);
  const close = async () => void (await Promise.all([made.close(), traces.close()]));
  return {
    ...made,
    close,
    async drain() {
      state.isReady = () => false;
      made.endWaits();
      await made.idle();
      await close();
      await logger.end();
    },
    logger,
    settings,
    trial,
    state,
    tracesOpened: async () => traces.opened(),
  };
}
