import { NO_UPSTREAM, type Variables } from '../../config.ts';
import type { Gateway, Given, Opened, Runtime } from '../../portico.ts';
import type { Trial } from './assignment.ts';
import { nodeDeps, openStore } from './deps.ts';
import { pinoLogger } from './logger.ts';
import { proxyTo, type Settings, settingsIn } from './settings.ts';
import { openTraces } from './tracing/index.ts';
import { exitBadly, type GatheredVariables, gatherVariables, type Refuse } from './variables.ts';

export type OpenedOnNode = ReturnType<typeof make>;

/**
 * The runtime for `portico`: Node, configured by these variables, which are joined by those of `.env` if they are the process's
 * own. A bad one ends the process with status 78.
 */
export function fromEnv(variables: Variables): { readonly runtime: Runtime } {
  return { runtime: runtimeOf(gatherVariables(variables)) };
}

/** `trial`: where no upstream is configured. */
export function runtimeOf(
  { variables, problems }: GatheredVariables,
  trial?: Trial,
  refuse: Refuse = exitBadly,
): Runtime {
  const settings = settingsIn(variables);
  const otherProblems = () => [...problems, ...('problems' in settings ? settings.problems : [])];
  const openWith = (made: Given) =>
    open(made, 'data' in settings ? settings.data : refuse(settings.problems), trial, refuse);
  return { variables, otherProblems, open: openWith, refuse };
}

/** @throws TypeError if the gateway was made with another runtime */
export function openedOnNode(gateway: Gateway | undefined): OpenedOnNode {
  const own = gateway && openedHere.get(gateway.opened);
  if (!own) throw new TypeError('serve takes an app, and the gateway in it that was made with fromEnv of portico/node');
  return own;
}

const openedHere = new WeakMap<Opened, OpenedOnNode>();

function open(given: Given, settings: Settings, trial: Trial | undefined, refuse: Refuse): OpenedOnNode {
  const upstream = given.config.upstreamBaseUrl ?? trial?.upstream ?? refuse([NO_UPSTREAM]);
  const opened = make(given, settings, upstream, trial);
  openedHere.set(opened, opened);
  return opened;
}

const always = () => true;

function make({ config, table, overviews, hooks }: Given, settings: Settings, upstream: URL, trial?: Trial) {
  const logger = pinoLogger(config.logLevel);
  let isReady = always; // `serve` has its own word on it, another server has none
  let isCuttingOff = false;
  const traces = openTraces(upstream, logger);
  const given = {
    config,
    table,
    overviews,
    hooks,
    upstream,
    logger,
    readiness: { isReady: () => isReady() },
    isCuttingOff: () => isCuttingOff,
    trialAccounts: trial?.accounts,
    tracing: traces.tracing,
    way: { tls: settings.upstreamTls, ...(config.upstreamBaseUrl && proxyTo(upstream, settings)) },
  };
  const { storeUrl } = settings;
  const store = openStore(given, storeUrl && { ...storeUrl, secured: settings.storeTls });
  const made = nodeDeps(given, store, logger.dropped);
  const close = async () => void (await Promise.all([made.close(), traces.close()]));
  return {
    ...made,
    close,
    async drain() {
      isReady = () => false;
      made.endWaits();
      await made.idle();
      await close();
      await logger.end();
    },
    logger,
    settings,
    trial,
    storeOpened: store.opened,
    tracesOpened: async () => traces.opened(),
    /** Whether requests are taken, for probes. */
    readyWhen: (is: () => boolean) => void (isReady = is),
    /** What is still under way is cut off from now on. */
    cutOff: () => void (isCuttingOff = true),
  };
}
