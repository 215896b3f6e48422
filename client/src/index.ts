export { readBatch } from './batch.ts';
export { type ClientOptions, createClient, type Portico } from './client.ts';
export { type Copies, type CopiesOptions, keepCopies } from './copies.ts';
export { each } from './each.ts';
export type { Globals } from './globals.ts';
export { type Before, type Outcome, outcomeOf } from './outcome.ts';
export { type FieldError, PorticoProblem } from './problem.ts';
export type { OperationId, Routes } from './routes.ts';
export type { Retry } from './send.ts';
export { streamOverview } from './stream.ts';
export { touches } from './touches.ts';
export type { CopyStore } from './stored.ts';
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
export { watchOverview, type WatchOptions } from './watch.ts';
export type * from './openapi.ts';
export type * from './registered.ts';
