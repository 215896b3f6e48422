export { readBatch } from './batch.ts';
export { type ClientOptions, createClient, type Portico } from './client.ts';
export { each } from './each.ts';
export { type Before, type Outcome, outcomeOf } from './outcome.ts';
export { type FieldError, PorticoProblem } from './problem.ts';
export type { OperationId, Routes } from './routes.ts';
export { streamOverview } from './stream.ts';
export type {
  Answer,
  Call,
  CallOptions,
  Code,
  Input,
  Item,
  ListId,
  OverviewId,
  OverviewInput,
  OverviewOf,
  SectionLine,
} from './types.ts';
export type * from './openapi.ts';
export type * from './registered.ts';
