export { GatewayError } from './core/errors.ts';
export { overview } from './gateway/overview.ts';
export { from, fromPath, type Overview, type Section } from './gateway/overview.ts';
export type { CallAnswer, CallInput, Calls, HostEnv, WriteInput } from './http/calls.ts';
export { type Gateway, portico, type PorticoOptions, type Runtime } from './portico.ts';
export * from './upstream/fields.ts';
export {
  type CachePolicy,
  defineRows,
  type Operation,
  type Refusal,
  type Row,
  type Tag,
} from './upstream/operation.ts';
export { type Page, pageOf } from './upstream/page.ts';
export * from './upstream/parameters.ts';
export type { AskedHeaders, Hooks, OnProblem, ToldProblem, UpstreamHeaders } from './upstream/hooks.ts';
