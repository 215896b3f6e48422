import { type Config, type ConfigProblem, NO_UPSTREAM, type Variables } from '../../../config.ts';
import { checkedConfig } from '../../../portico.ts';
import { proxyAccount } from '../../../proxy-account/index.ts';
import { type Table, tableOf } from '../../../upstream/table.ts';
import { runtimeOf } from '../runtime.ts';
import { type Settings, settingsIn } from '../settings.ts';
import { gatherVariables, nearlyVariables } from '../variables.ts';

/** What the gateway would start with. */
export interface Configured {
  readonly variables: Variables;
  readonly config: Config;
  readonly settings: Settings;
  readonly table: Table;
  /** What would not end the start, but is hardly meant. */
  readonly warnings: readonly string[];
}

/** Reads what the start reads. `hasSandbox`: whether an upstream is started where none is configured. */
export function configured(hasSandbox: boolean): Configured | { readonly problems: readonly ConfigProblem[] } {
  const runtime = runtimeOf(gatherVariables(process.env));
  const { variables } = runtime;
  const table = tableOf(proxyAccount);
  const [checked, settings] = [checkedConfig(runtime, table), settingsIn(variables)];
  if ('problems' in checked) return checked;
  if ('problems' in settings) return settings;
  const { config } = checked;
  if (!config.upstreamBaseUrl && !hasSandbox) return { problems: [NO_UPSTREAM] };
  return { variables, config, settings: settings.data, table, warnings: [...nearly(), ...uselessIn(config)] };
}

const nearly = () =>
  nearlyVariables(process.env).map(({ variable, did_you_mean: meant }) => `${variable} is not known: perhaps ${meant}`);

const uselessIn = ({ upstreamTimeoutMs, requestTimeoutMs }: Config) =>
  upstreamTimeoutMs > requestTimeoutMs
    ? ['UPSTREAM_TIMEOUT_MS is more than REQUEST_TIMEOUT_MS, which ends a call before']
    : [];
